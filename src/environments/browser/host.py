"""One Chromium of a worker, which lives as long as its environments need it.

Owns ``ChromiumHost``, on which the hosts of environments in a browser stand. Must not import ray.
"""

from __future__ import annotations

import asyncio

from environments.browser.owned_processes import process_mark
from environments.browser.process import BrowserProcess


class ChromiumHost:
    """Starts Chromium and knows whether it runs; what a host's environments are is its own business."""

    def __init__(self, browser: BrowserProcess) -> None:
        self._browser = browser
        self._identity: str | None = None

    async def start(self) -> None:
        """Start Chromium and open a context, which shows that it works."""
        context = await self._browser.open_context("<-loopback>")
        await context.close()
        pids = await asyncio.to_thread(lambda: self._browser.pids)
        self._identity = process_mark(min(pids)) if pids else None

    def alive(self) -> bool:
        """Whether Chromium's main process runs; where processes cannot be looked up it is believed to."""
        if self._identity is None:
            return True
        return process_mark(int(self._identity.partition(":")[0])) == self._identity

    async def close(self) -> None:
        """End Chromium."""
        await self._browser.close()
