"""Hosts of environments over the embedded sites, with a browser and without.

Owns ``browser_host`` and ``browserless_host``, which ``environment_hosts`` names. Must not import ray.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from environments.browser.processes import process_mark
from environments.embedded.sessions import SiteEndpoint
from environments.environment import Environment
from rollout_workers.spec import WorkerConfig

if TYPE_CHECKING:
    from environments.browser.session import BrowserSession


class BrowserHost:
    """One Chromium over the site server that the configuration names."""

    def __init__(self, config: WorkerConfig, session: BrowserSession | None = None) -> None:
        # Imported here, so that a worker without a browser does not pay for Playwright.
        from environments.browser.session import BrowserSession

        self._session = session or BrowserSession(config.browser)
        self._sites = SiteEndpoint(config.site_port, config.site_secret)
        self._identity: str | None = None

    async def start(self) -> None:
        """Start Chromium and open a context, which shows that it works."""
        context = await self._session.open_context("<-loopback>")
        await context.close()
        pids = await asyncio.to_thread(lambda: self._session.pids)
        self._identity = process_mark(min(pids)) if pids else None

    async def environment(self) -> Environment:
        """Return a new environment in this Chromium."""
        from environments.browser.environment import BrowserEnvironment
        from environments.embedded.world import EmbeddedWorld

        return BrowserEnvironment(self._session, EmbeddedWorld(self._sites))

    def alive(self) -> bool:
        """Whether Chromium's main process runs; where processes cannot be looked up it is believed to."""
        if self._identity is None:
            return True
        return process_mark(int(self._identity.partition(":")[0])) == self._identity

    async def close(self) -> None:
        """End Chromium."""
        await self._session.close()


class BrowserlessHost:
    """The sites' application inside the worker's own process."""

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._app: Any = None

    async def start(self) -> None:
        """Build the sites' data."""
        from sites.app import create_app

        self._app = await asyncio.to_thread(create_app, self._config.site_seed)

    async def environment(self) -> Environment:
        """Return a new environment over the application."""
        from environments.browserless.environment import BrowserlessEnvironment

        return BrowserlessEnvironment(self._app, self._config.browser)

    def alive(self) -> bool:
        """Whether the application is there."""
        return self._app is not None

    async def close(self) -> None:
        """Forget the application."""
        self._app = None


def browser_host(config: WorkerConfig) -> BrowserHost:
    """Return a host with a browser; needs ``site_port`` and ``site_secret``."""
    if not config.site_port:
        raise ValueError("the embedded environment needs the site server's port and secret; found port 0")
    return BrowserHost(config)


def browserless_host(config: WorkerConfig) -> BrowserlessHost:
    """Return a host without a browser; needs ``site_seed``."""
    return BrowserlessHost(config)
