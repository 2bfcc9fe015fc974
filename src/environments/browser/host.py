"""One Chromium of a worker, which lives as long as its environments need it.

Owns ``ChromiumHost``, the host of every environment in a browser. Must not import ray.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from environments.browser.environment import BrowserEnvironment
from environments.browser.owned_processes import process_mark
from environments.browser.process import BrowserProcess
from environments.browser.world import World
from environments.environment import Environment


class ChromiumHost:
    """An ``EnvironmentHost`` over one Chromium; ``make_world`` makes the world of each environment."""

    def __init__(self, browser: BrowserProcess, make_world: Callable[[], World]) -> None:
        self._browser, self._make_world = browser, make_world
        self._identity: str | None = None

    async def start(self) -> None:
        """Start Chromium and open a context, which shows that it works."""
        context = await self._browser.open_context("<-loopback>")
        await context.close()
        pids = await asyncio.to_thread(lambda: self._browser.pids)
        self._identity = process_mark(min(pids)) if pids else None

    async def environment(self) -> Environment:
        """Return a new environment in this Chromium."""
        return BrowserEnvironment(self._browser, self._make_world())

    def alive(self) -> bool:
        """Whether Chromium's main process runs; where processes cannot be looked up it is believed to."""
        if self._identity is None:
            return True
        return process_mark(int(self._identity.partition(":")[0])) == self._identity

    async def close(self) -> None:
        """End Chromium."""
        await self._browser.close()
