"""MiniWoB++ pages as a browser slot's episodes need them.

Owns ``MiniwobWorld``, over pages that keep their own score. Invariants: an episode is determined by its task's page and
seed; the slot goes on with the document that it has wherever that page forgets its last episode; once the page has
ended the episode nothing changes any more, and the score that it gave then is the one that is judged.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from environments.browser.interaction import Interaction
from environments.browser.slot import BrowserSlot
from environments.embedded.sessions import SiteSessions
from environments.embedded.world import EmbeddedWorld
from environments.environment import Grant
from environments.miniwob.pages import PAGES, Page
from records import failure_codes as codes
from records.environment import Action, Observation, Verdict
from records.episodes import Task
from records.failures import EpisodeFailed, Failure

FULL_REWARD = 1.0
"""The raw reward of a page for a task that is done; less is partial credit and does not pass."""

_CONTROL = (Path(__file__).parent / "page_control.js").read_text(encoding="utf-8")
_START = "window.__miniwob.start({seed}, {aids})"
_READY_POLL_S = 0.005
"""Fixed: between two looks whether a page is ready; how long that may take in all is the reset's own limit."""
_SCORE = "window.__miniwob ? window.__miniwob.score() : null"
_JUST_ENDED = "The page has ended the task; nothing more can be done on it."
_ENDED = "The page has ended the task already; nothing was done."


@dataclass(frozen=True, slots=True)
class Score:
    """What a page says of its episode: whether it has ended, the reward without time decay, and its reason."""

    done: bool
    raw_reward: float
    reason: str


class MiniwobWorld:
    """A ``World`` over the pages served at ``port`` of this machine, which need no session there."""

    keeps_context = True

    def __init__(self, port: int) -> None:
        self._server = EmbeddedWorld(SiteSessions(port))
        self._score = Score(False, 0.0, "")
        self._last: Observation | None = None

    async def open(self, task: Task, pages: Interaction, grant: Grant | None) -> Observation:
        """Open the task's page, unless it is there, and let it start the episode of the task's seed."""
        page, slot = _page_of(task), pages.slot
        if not _shows(slot, task, page):
            await self._server.open(task, pages, grant)
            await slot.tab.read(_CONTROL)
        await slot.tab.rest_mouse()
        pages.aside = _SCORE
        pages.shown, self._score = None, Score(False, 0.0, "")
        start = _START.format(seed=json.dumps(str(task.parameters["seed"])), aids=json.dumps(page.aids))
        while (intent := await slot.tab.read(start)) is None:
            await asyncio.sleep(_READY_POLL_S)
        self._last = replace(await pages.look(first=True), intent=str(intent))
        return self._last

    async def step(self, action: Action, pages: Interaction) -> Observation:
        """Let the agent act while the episode goes on, and look whether its page has ended it."""
        assert self._last is not None
        if self._score.done:
            return replace(self._last, intent=None, feedback=_ENDED, refused=True)
        seen = await pages.act(action)
        self._score = _score(pages.told_aside)
        if self._score.done:
            seen = replace(seen, feedback=" ".join(filter(None, (seen.feedback, _JUST_ENDED))))
        self._last = seen
        return seen

    async def judge(self, task: Task, answer: str | None, pages: Interaction) -> Verdict:
        """Judge by the page's score; whatever the agent answers counts for nothing."""
        score = self._score if self._score.done else _score(await pages.slot.tab.read(_SCORE))
        passed = score.done and score.raw_reward >= FULL_REWARD
        ended = "the page ended the episode" if score.done else "the page did not end the episode"
        reward = f"raw reward {score.raw_reward:g}, {FULL_REWARD:g} passes"
        self._score = score
        return Verdict(float(passed), (ended, reward, *([f"reason: {score.reason}"] if score.reason else [])))

    async def close(self, *, judged: bool = False) -> None:
        """Forget the episode."""
        await self._server.close(judged=judged)


def _shows(slot: BrowserSlot, task: Task, page: Page) -> bool:
    """Whether the slot's one tab has this very page open, in a document that can play it again."""
    here = slot.tab.page.url.partition("#")[0] if len(slot.tabs) == 1 else ""
    return slot.inherits and not page.reload and here == slot.addresses.real(task.start_url)


def _score(told: Any) -> Score:
    if told is None:
        return Score(True, 0.0, "the page was left")
    return Score(bool(told["done"]), float(told["raw"]), str(told["reason"]))


def _page_of(task: Task) -> Page:
    name, seed = task.parameters.get("page"), task.parameters.get("seed")
    if name not in PAGES or seed is None:
        detail = f"{task.task_id}: expected parameters page (one of the pages played) and seed, found {task.parameters}"
        raise EpisodeFailed(Failure(codes.UNKNOWN_PAGE, detail))
    return PAGES[name]
