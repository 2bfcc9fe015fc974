"""The host of environments over the embedded sites without a browser; imports nothing of one."""

from __future__ import annotations

import asyncio

from starlette.applications import Starlette

from environments.browser.settings import BrowserSettings
from environments.browserless.environment import BrowserlessEnvironment
from environments.environment import Environment
from judges.interface import TrajectoryJudge
from sites.app import create_app
from sites.settings import SitesSettings


class BrowserlessHost:
    """The sites' application inside the worker's own process."""

    def __init__(self, settings: SitesSettings, browser: BrowserSettings, judge: TrajectoryJudge) -> None:
        self._settings, self._browser, self._judge = settings, browser, judge
        self._app: Starlette | None = None

    async def start(self) -> None:
        """Build the sites' data."""
        self._app = await asyncio.to_thread(create_app, self._settings.seed)

    async def environment(self) -> Environment:
        """Return a new environment over the application."""
        if self._app is None:
            raise RuntimeError("expected a host that was started and not closed")
        return BrowserlessEnvironment(self._app, self._browser, self._judge)

    def alive(self) -> bool:
        """Whether the application is there."""
        return self._app is not None

    async def close(self) -> None:
        """Forget the application."""
        self._app = None
