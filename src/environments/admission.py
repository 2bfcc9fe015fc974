"""Admission: what episodes of a kind must be granted before they are played, asked for in the driver.

Owns the ``Admission`` protocol, and ``AskedFor``, by which environments ask where no pool of workers does.
Invariants: no method waits; a grant goes with its episode to the worker and comes back with the answer, and whoever got
one gives it back once, however the episode ends.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Protocol

from environments.environment import Environment, Grant
from judges.interface import OpenVerdict
from records.deadline import Deadline
from records.environment import Action, Observation, Verdict
from records.episodes import Task
from records.failures import EpisodeFailed, Failure

_LOOK_AGAIN_S = 0.05
"""Fixed: a pace; waiting for admission ends with what is waited for, which has limits of its own."""


class Admission(Protocol):
    """Who may be played now; called from one thread, never from two at once."""

    def ask(self, request: str, task: Task) -> None:
        """Queue an episode of ``task`` under a name that no other has; no effect on one that waits already."""
        ...

    def decided(self, most: int) -> Mapping[str, Grant | Failure]:
        """Return what has become of requests since: at most ``most`` grants, and failures of those that get none."""
        ...

    def withdraw(self, request: str) -> None:
        """Take back a request that waits; no effect on others."""
        ...

    def release(self, grant: Grant, *, lost: bool = False) -> None:
        """End a grant; ``lost`` where nobody knows what the episode did. No effect on one that has ended."""
        ...


class AskedFor:
    """An environment that asks for its own grants; all of one admission share an ``Asking``."""

    def __init__(self, env: Environment, asking: Asking) -> None:
        self.env, self._asking = env, asking
        self._grant: Grant | None = None

    async def reset(
        self,
        task: Task,
        *,
        seed: int = 0,
        episode_id: str = "",
        deadline: Deadline | None = None,
        grant: Grant | None = None,
    ) -> Observation:
        """Give back what the last episode held, wait for the task's grant, and start."""
        await self._end()
        self._grant = await self._asking.wait(task)
        async with AsyncExitStack() as unless_done:
            unless_done.push_async_callback(self._end)
            seen = await self.env.reset(task, seed=seed, episode_id=episode_id, deadline=deadline, grant=self._grant)
            unless_done.pop_all()
        return seen

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        """Apply one action; an episode that fails gives back what it held."""
        async with AsyncExitStack() as unless_done:
            unless_done.push_async_callback(self._end)
            seen = await self.env.step(action, deadline)
            unless_done.pop_all()
        return seen

    async def evaluate(self, answer: str | None, deadline: Deadline | None = None) -> Verdict | OpenVerdict:
        """Judge the episode and give back what it held."""
        try:
            return await self.env.evaluate(answer, deadline)
        finally:
            await self._end()

    async def screenshot(self, deadline: Deadline | None = None) -> bytes | None:
        """Return a PNG of the current page."""
        return await self.env.screenshot(deadline)

    async def close(self) -> None:
        """Release everything; safe to call twice."""
        await self._end()
        await self.env.close()

    async def _end(self) -> None:
        """Give the grant back when nothing of its episode is left."""
        grant, self._grant = self._grant, None
        if grant is not None:
            try:
                await self.env.close()
            finally:
                self._asking.admission.release(grant)


class Asking:
    """All requests to one admission where there is no pool, each waited for by its own environment."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self._decided: dict[str, Grant | Failure] = {}
        self._numbers = itertools.count(1)

    async def wait(self, task: Task) -> Grant:
        """Return a grant for ``task``; raise ``EpisodeFailed`` where there can be none."""
        request = f"{task.task_id} ({next(self._numbers)})"
        self.admission.ask(request, task)
        taken = False
        try:
            while request not in self._decided:
                self._decided.update(self.admission.decided(1))
                if request not in self._decided:
                    await asyncio.sleep(_LOOK_AGAIN_S)
            found = self._decided.pop(request)
            if isinstance(found, Failure):
                raise EpisodeFailed(found)
            taken = True
            return found
        finally:
            if not taken:
                self.admission.withdraw(request)
                late = self._decided.pop(request, None)
                if isinstance(late, Grant):
                    self.admission.release(late)
