"""WebArena's containers as a kind of environment.

Owns ``WEBARENA``. Invariant: all processes of a run, on whatever machine, mean the same sites: those that the driver's
settings and environment variables name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from environments.browser.settings import BrowserSettings
from environments.kinds import EnvironmentHost, EnvironmentKind, Service, Wanted
from environments.task_sources import TaskSource
from environments.webarena.leases.admission import SiteAdmission
from environments.webarena.leases.ledger import SiteLedger
from environments.webarena.leases.resets import Resets
from environments.webarena.login.accounts import Accounts
from environments.webarena.reset.resetters import resetters
from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.deployments import deployments_of, with_addresses
from environments.webarena.sites.episode_addresses import resolver_rules
from environments.webarena.sites.table import SiteTable
from environments.webarena.tasks.source import WebArenaTasks
from environments.webarena.tasks.start_pages import START_PAGES
from judges.interface import TrajectoryJudge
from records.checks import Check


@contextmanager
def _site_admission(settings: WebArenaSettings) -> Iterator[Service[WebArenaSettings]]:
    """Lease the sites to episodes, and reset them in a thread."""
    settings = with_addresses(settings)
    units = {name: tuple(deployment.addresses.bases) for name, deployment in deployments_of(settings).items()}
    table = SiteTable.of(settings)
    can = resetters(settings.deployments, table.names)
    ledger = SiteLedger(units, resettable=can, fresh=settings.fresh_at_start)
    with Resets(can) as resets:
        admission = SiteAdmission(ledger, resets, hold_s=settings.lease_hold_s, writes=settings.writes, table=table)
        yield Service(settings, admission)


def _host(
    settings: WebArenaSettings, connection: WebArenaSettings, browser: BrowserSettings, judge: TrajectoryJudge
) -> EnvironmentHost:
    """Return a host over the sites that the driver means: ``connection`` has all addresses in it."""
    from environments.browser.host import ChromiumHost
    from environments.browser.process import BrowserProcess
    from environments.webarena.sites.shared import make_sites
    from environments.webarena.world import WebArenaWorld

    deployments, accounts = deployments_of(connection), Accounts.load(connection.credentials_file)
    process = BrowserProcess(browser, resolver_rules(deployments.values()))
    sites = make_sites(connection, deployments, process, accounts, judge=judge)
    return ChromiumHost(process, lambda: WebArenaWorld(sites))


def _tasks(settings: WebArenaSettings) -> TaskSource:
    return WebArenaTasks(settings)


def _preflight(settings: WebArenaSettings, wanted: Wanted) -> list[Check]:
    from environments.webarena.preflight import look

    return look(settings, wanted)


WEBARENA = EnvironmentKind(
    settings=WebArenaSettings,
    tasks=_tasks,
    host=_host,
    service=_site_admission,
    preflight=_preflight,
    first_look={"task_files": {"train": START_PAGES}},
)
"""The environment ``webarena``."""
