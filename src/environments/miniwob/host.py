"""A worker's Chromium over the MiniWoB++ pages, which the worker serves itself.

Owns ``MINIWOB``, which ``environment_hosts`` names. Must not import ray.
"""

from __future__ import annotations

import asyncio

from environments.embedded.hosts import BrowserHost
from environments.environment import Environment
from environments.kinds import EnvironmentKind
from environments.miniwob.page_server import PageServer, page_folder
from environments.miniwob.tasks import MiniwobTasks
from rollout_workers.spec import WorkerConfig


class MiniwobHost(BrowserHost):
    """One Chromium, and the server of its pages."""

    def __init__(self, config: WorkerConfig) -> None:
        super().__init__(config)
        self._server = PageServer(page_folder())

    async def start(self) -> None:
        """Serve the pages and start Chromium; raise ``EpisodeFailed`` (infra) when either does not start."""
        await asyncio.to_thread(self._server.start)
        await super().start()

    async def environment(self) -> Environment:
        """Return a new environment in this Chromium."""
        from environments.browser.environment import BrowserEnvironment
        from environments.miniwob.world import MiniwobWorld

        return BrowserEnvironment(self._session, MiniwobWorld(self._server.port))

    def alive(self) -> bool:
        """Whether Chromium and the server run."""
        return self._server.alive and super().alive()

    async def close(self) -> None:
        """End Chromium and the server."""
        await super().close()
        await asyncio.to_thread(self._server.close)


MINIWOB = EnvironmentKind(MiniwobHost, lambda options: MiniwobTasks())
"""The environment ``miniwob``; its host raises ``EpisodeFailed`` where the ``miniwob`` package is not installed."""
