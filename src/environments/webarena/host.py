"""The host of environments over WebArena's sites: one Chromium and its logged-in sessions."""

from __future__ import annotations

from environments.browser.environment import BrowserEnvironment
from environments.browser.host import ChromiumHost
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.environment import Environment
from environments.webarena.login.accounts import Accounts
from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.deployments import deployments_of
from environments.webarena.sites.episode_addresses import resolver_rules
from environments.webarena.sites.shared import make_sites
from environments.webarena.world import WebArenaWorld
from judges.interface import TrajectoryJudge


class WebArenaHost(ChromiumHost):
    """One Chromium over the sites that the settings and the environment variables name."""

    def __init__(self, settings: WebArenaSettings, browser: BrowserSettings, judge: TrajectoryJudge) -> None:
        deployments, accounts = deployments_of(settings), Accounts.load(settings.credentials_file)
        process = BrowserProcess(browser, resolver_rules(deployments.values()))
        super().__init__(process)
        self._webarena = make_sites(settings, deployments, process, accounts, judge=judge)

    async def environment(self) -> Environment:
        """Return a new environment in this Chromium."""
        return BrowserEnvironment(self._browser, WebArenaWorld(self._webarena))
