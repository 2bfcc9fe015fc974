"""The environments of one worker: a fixed number of slots over one host that is replaced when it dies.

Owns who uses which environment and when the browser is recycled. Invariants: an environment serves
one episode at a time; one that failed, or may be in the middle of something, is not used again; a dead
host, or one whose episodes only fail, is replaced once for all slots, and who still plays in a living one ends
what it plays. Must not import ray.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from environments.environment import Environment
from environments.kinds import EnvironmentHost
from records.failures import Failure, FailureKind

logger = logging.getLogger(__name__)

MIN_FAILURES_IN_A_ROW = 3
"""Infrastructure failures without a success between them (at least one a slot) that condemn a host."""


@dataclass(slots=True, eq=False)
class _Hosted:
    """A host, and how many slots have an episode in it."""

    host: EnvironmentHost
    playing: int = 0


@dataclass(slots=True)
class Slot:
    """One place for an episode; ``note`` tells it how the episode went."""

    env: Environment | None = None
    hosted: _Hosted | None = None
    failure: Failure | None = None
    close: bool = False

    def note(self, failure: Failure | None, *, close: bool = False) -> None:
        """Say how the episode that used this slot ended, and whether nothing of it may be left."""
        self.failure, self.close = failure, close


class Slots:
    """Hands environments to episodes."""

    def __init__(
        self, make_host: Callable[[], Awaitable[EnvironmentHost]], count: int, *, close_deadline_s: float
    ) -> None:
        self._make_host = make_host
        self._close_deadline_s = close_deadline_s
        self._free: asyncio.Queue[Slot] = asyncio.Queue()
        for _ in range(count):
            self._free.put_nowait(Slot())
        self._count = count
        self._current: _Hosted | None = None
        self._replaced: set[_Hosted] = set()
        self._started = 0
        self._failures_in_a_row = 0
        self._hosting = asyncio.Lock()

    async def start(self) -> None:
        """Start the first host; raise ``EpisodeFailed`` when it does not start."""
        async with self._hosting:
            await self._ensure_host()

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[tuple[Slot, Environment]]:
        """Wait for a free slot and lend its environment; call the slot's ``note`` before giving it back."""
        slot = await self._free.get()
        slot.note(None)
        hosted: _Hosted | None = None
        try:
            async with self._hosting:
                hosted = await self._ensure_host()
                hosted.playing += 1
            if slot.env is None or slot.hosted is not hosted:
                await self._close_environment(slot)
                slot.env, slot.hosted = await hosted.host.environment(), hosted
            yield slot, slot.env
        finally:
            await self._take_back(slot, hosted)

    async def close(self) -> None:
        """Close every host and with it all environments."""
        async with self._hosting:
            for hosted in [self._current, *self._replaced]:
                await self._close_host(hosted)
            self._current, self._replaced = None, set()

    async def _ensure_host(self) -> _Hosted:
        """Return the host that episodes begin in; whoever calls has the lock."""
        current = self._current
        condemned = self._failures_in_a_row >= max(MIN_FAILURES_IN_A_ROW, self._count)
        alive = current is not None and current.host.alive()
        if current is None or condemned or not alive:
            self._current = None
            if current is not None and current.playing and alive:
                self._replaced.add(current)
            else:
                await self._close_host(current)
            self._failures_in_a_row = 0
            self._current = current = _Hosted(await self._new_host())
            if self._started:
                logger.warning("replaced the browser (replacement %d)", self._started)
            self._started += 1
        return current

    async def _new_host(self) -> EnvironmentHost:
        host = await self._make_host()
        try:
            await host.start()
        except BaseException:
            await self._bounded(host.close(), "browser")
            raise
        return host

    async def _take_back(self, slot: Slot, hosted: _Hosted | None) -> None:
        kind = slot.failure.kind if slot.failure else None
        if hosted is not None and hosted is self._current:
            self._failures_in_a_row = self._failures_in_a_row + 1 if kind is FailureKind.INFRA else 0
        try:
            if slot.close or kind in (FailureKind.INFRA, FailureKind.JUDGE) or hosted in self._replaced:
                await self._close_environment(slot)
            if hosted is not None:
                await self._leave(hosted)
        finally:
            self._free.put_nowait(slot)

    async def _leave(self, hosted: _Hosted) -> None:
        hosted.playing -= 1
        if not hosted.playing and hosted in self._replaced:
            self._replaced.remove(hosted)
            await self._close_host(hosted)

    async def _close_environment(self, slot: Slot) -> None:
        env, slot.env = slot.env, None
        if env is not None:
            await self._bounded(env.close(), "environment")

    async def _close_host(self, hosted: _Hosted | None) -> None:
        if hosted is not None:
            await self._bounded(hosted.host.close(), "browser")

    async def _bounded(self, closing: Coroutine[Any, Any, None], what: str) -> None:
        """Close something that may be broken already: within a deadline, its own errors only logged."""
        task = asyncio.ensure_future(closing)
        done, _ = await asyncio.wait({task}, timeout=self._close_deadline_s)
        if not done:
            task.cancel()
            logger.warning("closing the %s took longer than %g s; left behind", what, self._close_deadline_s)
        elif not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("closing the %s failed: %s: %s", what, type(error).__name__, error)
