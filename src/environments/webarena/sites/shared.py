"""What the environments of one worker share about WebArena's sites.

Owns ``WebArenaSites``: the deployments, the logged-in sessions, and how
episodes are judged. Invariant: a session of before a reset is never used after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from environments.addresses import EpisodeAddresses
from environments.browser.process import BrowserProcess
from environments.webarena.leases.units import SiteLease
from environments.webarena.login.accounts import Accounts, CredentialsMissing
from environments.webarena.login.form_login import FormLogin, StoredLogin
from environments.webarena.login.forms import LoginForm
from environments.webarena.login.sessions import LoginSessions
from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.episode_addresses import Deployment, WebArenaAddresses, episode_addresses
from environments.webarena.sites.http_client import site_functions
from environments.webarena.sites.table import SiteTable
from judges.functions import PageFunction
from judges.interface import TrajectoryJudge
from records import failure_codes as codes
from records.deadline import Deadline
from records.episodes import Task
from records.failures import EpisodeFailed, Failure


@dataclass(frozen=True)
class WebArenaSites:
    """See the module."""

    settings: WebArenaSettings
    deployments: Mapping[str, Deployment]
    logins: LoginSessions
    forms: Mapping[str, LoginForm]
    accounts: Accounts
    judge: TrajectoryJudge

    def addresses(self, lease: SiteLease) -> WebArenaAddresses:
        """Return the addresses that an episode with this lease may reach."""
        return episode_addresses({site: self.deployments[unit] for site, unit in lease.units.items()})

    def functions(self, lease: SiteLease, deadline: Deadline) -> Mapping[str, PageFunction]:
        """Return the functions that a task's evaluators may name; their requests end by ``deadline``."""
        bases = {site: self.deployments[unit].real_addresses.bases[site] for site, unit in lease.units.items()}
        return site_functions(EpisodeAddresses(bases), self.accounts, deadline)

    def logins_of(self, task: Task) -> tuple[str, ...]:
        """Return the sites at which the task's episode is to be logged in."""
        return tuple(site for site in task.sites if task.require_login and site in self.forms)


def make_sites(
    settings: WebArenaSettings,
    deployments: Mapping[str, Deployment],
    browser: BrowserProcess,
    accounts: Accounts,
    *,
    judge: TrajectoryJudge,
    forms: Mapping[str, LoginForm] | None = None,
) -> WebArenaSites:
    """Return the sites for the environments of one worker."""
    forms = SiteTable.of(settings).forms if forms is None else forms
    form_login = FormLogin(browser, timeout_s=settings.login_timeout_s, load_timeout_s=settings.login_load_timeout_s)

    async def log_in(deployment: str, site: str) -> StoredLogin:
        try:
            account = accounts.of(site)
        except CredentialsMissing as error:
            raise EpisodeFailed(Failure(codes.LOGIN_FAILED, str(error))) from error
        return await form_login.log_in(deployments[deployment].addresses.bases[site], forms[site], account)

    logins = LoginSessions(
        log_in,
        lifetime_s=lambda site: forms[site].lifetime_s,
        margin_s=settings.login_margin_s,
        timeout_s=settings.login_timeout_s,
    )
    return WebArenaSites(settings, deployments, logins, forms, accounts, judge)
