"""The environments of one worker: a fixed number of slots over one host that is replaced when it dies.

Owns who uses which environment and when the browser is recycled. Invariants: an environment serves
one episode at a time; one that failed, or may be in the middle of something, is not used again; a dead
host, or one whose episodes only fail, is replaced once for all slots. Must not import ray.
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


@dataclass(slots=True)
class Slot:
    """One place for an episode; ``note`` tells it how the episode went."""

    env: Environment | None = None
    generation: int = -1
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
        self._host: EnvironmentHost | None = None
        self._generation = -1
        self._failures_in_a_row = 0
        self._hosting = asyncio.Lock()

    async def start(self) -> None:
        """Start the first host; raise ``EpisodeFailed`` when it does not start."""
        await self._ensure_host()

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[tuple[Slot, Environment]]:
        """Wait for a free slot and lend its environment; call the slot's ``note`` before giving it back."""
        slot = await self._free.get()
        slot.note(None)
        try:
            host = await self._ensure_host()
            if slot.env is None or slot.generation != self._generation:
                await self._close_environment(slot)
                slot.env, slot.generation = await host.environment(), self._generation
            yield slot, slot.env
        finally:
            await self._take_back(slot)

    async def close(self) -> None:
        """Close the host and with it all environments."""
        async with self._hosting:
            await self._close_host()

    async def _ensure_host(self) -> EnvironmentHost:
        async with self._hosting:
            condemned = self._failures_in_a_row >= max(MIN_FAILURES_IN_A_ROW, self._count)
            if self._host is None or condemned or not self._host.alive():
                await self._close_host()
                self._failures_in_a_row = 0
                host = await self._make_host()
                await host.start()
                self._host = host
                self._generation += 1
                if self._generation:
                    logger.warning("replaced the browser (replacement %d)", self._generation)
            return self._host

    async def _take_back(self, slot: Slot) -> None:
        kind = slot.failure.kind if slot.failure else None
        if slot.generation == self._generation:
            self._failures_in_a_row = self._failures_in_a_row + 1 if kind is FailureKind.INFRA else 0
        try:
            if slot.close or kind in (FailureKind.INFRA, FailureKind.JUDGE):
                await self._close_environment(slot)
        finally:
            self._free.put_nowait(slot)

    async def _close_environment(self, slot: Slot) -> None:
        env, slot.env = slot.env, None
        if env is not None:
            await self._bounded(env.close(), "environment")

    async def _close_host(self) -> None:
        host, self._host = self._host, None
        if host is not None:
            await self._bounded(host.close(), "browser")

    async def _bounded(self, closing: Coroutine[Any, Any, None], what: str) -> None:
        """Close something that may be broken already: within a deadline, its own errors only logged."""
        task = asyncio.ensure_future(closing)
        done, _ = await asyncio.wait({task}, timeout=self._close_deadline_s)
        if not done:
            task.cancel()
            logger.warning("closing the %s took longer than %g s; left behind", what, self._close_deadline_s)
        elif not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("closing the %s failed: %s: %s", what, type(error).__name__, error)
