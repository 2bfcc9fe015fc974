"""The host of environments over the embedded sites in Chromium."""

from __future__ import annotations

from environments.browser.environment import BrowserEnvironment
from environments.browser.host import ChromiumHost
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from environments.environment import Environment
from judges.interface import TrajectoryJudge


class SitesHost(ChromiumHost):
    """One Chromium over the site server at ``sites``."""

    def __init__(self, sites: SiteEndpoint, browser: BrowserSettings, judge: TrajectoryJudge) -> None:
        super().__init__(BrowserProcess(browser))
        self._sites, self._judge = sites, judge

    async def environment(self) -> Environment:
        """Return a new environment in this Chromium."""
        return BrowserEnvironment(self._browser, EmbeddedWorld(self._sites, self._judge))
