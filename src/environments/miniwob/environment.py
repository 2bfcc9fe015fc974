"""Episodes on MiniWoB++ pages in a real browser.

Owns ``MiniwobEnvironment``: a browser slot whose pages keep their own score. Invariants: an episode is
determined by its task's page and seed; the slot goes on with the document that it has wherever that page
forgets its last episode; once the page has ended the episode nothing changes any more, and the score that it
gave then is the one that is judged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from environments.browser.environment import BrowserEnvironment
from environments.browser.session import BrowserSession
from environments.browser.settings import BrowserSettings
from environments.embedded.sessions import SiteSessions
from environments.miniwob.pages import PAGES, Page
from records import failure_codes as codes
from records.environment import Action, Observation, Verdict
from records.episodes import Task
from records.failures import EpisodeFailed, Failure

FULL_REWARD = 1.0
"""The raw reward of a page for a task that is done; less is partial credit and does not pass."""

_CONTROL = (Path(__file__).parent / "page_control.js").read_text(encoding="utf-8")
_START = "window.__miniwob.start({seed}, {aids}, {ready_ms})"
_SCORE = "window.__miniwob ? window.__miniwob.score() : null"
_JUST_ENDED = "The page has ended the task; nothing more can be done on it."
_ENDED = "The page has ended the task already; nothing was done."


@dataclass(frozen=True, slots=True)
class Score:
    """What a page says of its episode: whether it has ended, the reward without time decay, and its reason."""

    done: bool
    raw_reward: float
    reason: str


class MiniwobEnvironment(BrowserEnvironment):
    """An ``Environment`` in a context of ``session`` over the pages served at ``port`` of this machine."""

    def __init__(self, session: BrowserSession, port: int, settings: BrowserSettings | None = None) -> None:
        super().__init__(session, SiteSessions(port), settings)
        self._score = Score(False, 0.0, "")
        self._last: Observation | None = None

    async def _reset(self, task: Task, take_over: bool) -> Observation:
        page = _page_of(task)
        if not (take_over and self._shows(task, page)):
            await super()._reset(task, take_over)
            await self._tab.read(_CONTROL)
        await self._tab.rest_mouse()
        self._task, self._shown, self._score = task, None, Score(False, 0.0, "")
        start = _START.format(
            seed=json.dumps(str(task.parameters["seed"])),
            aids=json.dumps(page.aids),
            ready_ms=self._settings.reset_timeout_s * 1000,
        )
        intent = str(await self._tab.read(start))
        seen = await self._show(await self._tab.step(None, self._options()), [], first=True)
        self._last = replace(seen, intent=intent)
        return self._last

    async def _step(self, action: Action) -> Observation:
        assert self._last is not None
        if self._score.done:
            return replace(self._last, intent=None, feedback=_ENDED)
        seen = await super()._step(action)
        self._score = await self._read_score()
        if self._score.done:
            seen = replace(seen, feedback=" ".join(filter(None, (seen.feedback, _JUST_ENDED))))
        self._last = seen
        return seen

    async def _evaluate(self, answer: str | None) -> Verdict:
        if self._task is None or not self._tabs:
            raise RuntimeError("no episode is open: call reset first")
        if not self._score.done:
            self._score = await self._read_score()
        score = self._score
        passed = score.done and score.raw_reward >= FULL_REWARD
        ended = "the page ended the episode" if score.done else "the page did not end the episode"
        reward = f"raw reward {score.raw_reward:g}, {FULL_REWARD:g} passes"
        return Verdict(float(passed), (ended, reward, *([f"reason: {score.reason}"] if score.reason else [])))

    def _shows(self, task: Task, page: Page) -> bool:
        """Whether the slot's one tab has this very page open, in a document that can play it again."""
        here = self._tabs[0].page.url.partition("#")[0] if len(self._tabs) == 1 else ""
        return not page.reload and here == self._hosts.real(task.start_url)

    async def _read_score(self) -> Score:
        told = await self._tab.read(_SCORE)
        if told is None:
            return Score(True, 0.0, "the page was left")
        return Score(bool(told["done"]), float(told["raw"]), str(told["reason"]))


def _page_of(task: Task) -> Page:
    name, seed = task.parameters.get("page"), task.parameters.get("seed")
    if name not in PAGES or seed is None:
        detail = f"{task.task_id}: expected parameters page (one of the pages played) and seed, found {task.parameters}"
        raise EpisodeFailed(Failure(codes.UNKNOWN_PAGE, detail))
    return PAGES[name]
