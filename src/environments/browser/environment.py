"""Episodes in a real browser.

Owns ``BrowserEnvironment``: one slot in a worker's ``BrowserProcess`` and the world that its episodes are played in.
Invariants: one episode at a time; every act ends by the deadline that it is given, and at once where the process of a
tab dies; what a world does not keep for the next episode is given back when the episode ends, however it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from typing import TypeVar

from environments.browser.calls import unless_crashed
from environments.browser.interaction import Interaction
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.browser.slot import MOST_REFUSED, BrowserSlot
from environments.browser.world import World
from environments.environment import Grant
from judges.interface import OpenVerdict
from records import failure_codes as codes
from records.deadline import Deadline
from records.environment import Action, Observation, Verdict
from records.episodes import Task
from records.failures import EpisodeFailed, Failure

T = TypeVar("T")


class BrowserEnvironment:
    """An ``Environment`` in contexts of ``browser`` on the sites that ``world`` opens."""

    def __init__(self, browser: BrowserProcess, world: World, settings: BrowserSettings | None = None) -> None:
        self.world = world
        self.slot = BrowserSlot(browser, settings or browser.settings)
        self.pages = Interaction(self.slot)
        self._task: Task | None = None

    async def reset(
        self,
        task: Task,
        *,
        seed: int = 0,
        episode_id: str = "",
        deadline: Deadline | None = None,
        grant: Grant | None = None,
    ) -> Observation:
        """Give the task a fresh state and open its start pages (``|AND|`` separates several)."""
        if not self.world.keeps_context:
            await self._end()
        self.slot.begin_episode()
        self._task, self.pages.shown = task, None
        return await self._act(deadline, "reset", partial(self.world.open, task, self.pages, grant))

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        """Apply one action; see ``Environment.step``."""
        if not self.slot.tabs:
            raise RuntimeError("no episode is open: call reset first")
        what = f"{action.kind} on {self.slot.addresses.canonical(self.slot.tab.page.url)}"
        return await self._act(deadline, what, partial(self.world.step, action, self.pages))

    async def evaluate(self, answer: str | None, deadline: Deadline | None = None) -> Verdict | OpenVerdict:
        """Judge the episode."""
        if self._task is None or not self.slot.tabs:
            raise RuntimeError("no episode is open: call reset first")
        self.slot.watching = False
        work = partial(self.world.judge, self._task, answer, self.pages)
        verdict = await self._act(deadline, "evaluate", work)
        if not self.world.keeps_context:
            await self._end(judged=True)
        return verdict

    async def screenshot(self, deadline: Deadline | None = None) -> bytes | None:
        """Return a PNG of the viewport; None before the first episode."""
        if not self.slot.tabs:
            return None
        return await self._guard(deadline, "screenshot", self.pages.picture)

    async def close(self) -> None:
        """Close the context and give back what the episode holds; safe to call twice."""
        await self._end()

    async def _act(self, deadline: Deadline | None, what: str, work: Callable[[], Coroutine[object, object, T]]) -> T:
        """Do one piece of work; where it raises or is cancelled, what is not kept is given back."""
        async with AsyncExitStack() as unless_done:
            if not self.world.keeps_context:
                unless_done.push_async_callback(self._end)
            result = await self._guard(deadline, what, work)
            unless_done.pop_all()
        return result

    async def _guard(self, deadline: Deadline | None, what: str, work: Callable[[], Coroutine[object, object, T]]) -> T:
        """Run one piece of work under its deadline; only one that ends well leaves the context to be taken over."""
        slot, limit = self.slot, deadline or Deadline()
        self.pages.deadline = limit
        slot.begin_work()
        try:
            with limit.waiting_for(codes.STEP_TIMEOUT, what):
                done = await limit.run(unless_crashed(slot.crashed, work))
        except EpisodeFailed as error:
            ended = slot.browser.why_page_ended() if error.failure.code == codes.BROWSER_CRASHED else None
            if ended is None:
                raise
            raise EpisodeFailed(ended) from error
        if slot.storm:
            detail = f"{what}: a page opened more than {MOST_REFUSED} tabs beyond those that an episode may have"
            raise EpisodeFailed(Failure(codes.POPUP_STORM, detail))
        slot.end_work()
        return done

    async def _end(self, *, judged: bool = False) -> None:
        """Close the context and then give back what the episode held on the sites."""
        try:
            await self.slot.discard()
        finally:
            await self.world.close(judged=judged)
