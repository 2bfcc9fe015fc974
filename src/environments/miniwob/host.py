"""A worker's Chromium over the MiniWoB++ pages, which the worker serves itself. Must not import ray."""

from __future__ import annotations

import asyncio

from environments.browser.host import ChromiumHost
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.miniwob.page_server import PageServer, page_folder
from environments.miniwob.world import MiniwobWorld


class MiniwobHost(ChromiumHost):
    """One Chromium, and the server of its pages."""

    def __init__(self, browser: BrowserSettings) -> None:
        super().__init__(BrowserProcess(browser), lambda: MiniwobWorld(self._server.port))
        self._server = PageServer(page_folder())

    async def start(self) -> None:
        """Serve the pages and start Chromium; raise ``EpisodeFailed`` (infra) when either does not start."""
        await asyncio.to_thread(self._server.start)
        await super().start()

    def alive(self) -> bool:
        """Whether Chromium and the server run."""
        return self._server.alive and super().alive()

    async def close(self) -> None:
        """End Chromium and the server."""
        await super().close()
        await asyncio.to_thread(self._server.close)
