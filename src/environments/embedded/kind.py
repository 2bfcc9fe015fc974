"""The embedded sites as kinds of environment: in Chromium, and without a browser.

Owns ``EMBEDDED`` and ``BROWSERLESS``, which share one section of a recipe. Invariant: tasks are drawn over the data of
the very seed that the sites are made from. Sites and browsers are imported when they are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from environments.browser.settings import BrowserSettings
from environments.embedded.sessions import SiteEndpoint
from environments.kinds import EnvironmentHost, EnvironmentKind, Service, ServiceProcess, Wanted
from judges.interface import TrajectoryJudge
from records.checks import Check, Status
from sites.faults import FaultSettings
from sites.settings import SitesSettings
from telemetry import meter

if TYPE_CHECKING:
    from sites.chains.source import ChainTasks
    from sites.task_source import EmbeddedTasks


def embedded_tasks(settings: SitesSettings, *, scripted: bool = True) -> EmbeddedTasks | ChainTasks:
    """Draw tasks, where ``scripted`` also those on pages that need their scripts."""
    if settings.family == "chains":
        from sites.chains.source import ChainTasks

        return ChainTasks(settings.names, settings.chains)
    from sites.task_source import EmbeddedTasks

    return EmbeddedTasks(settings.names, settings.seed, scripted=scripted)


@contextmanager
def _serve(settings: SitesSettings) -> Iterator[Service[SiteEndpoint]]:
    """Serve the sites from a process of their own, started afresh when it dies or hangs."""
    from sites.server import SiteServer
    from sites.watch import SiteWatch

    with SiteServer(settings) as server, SiteWatch(server, settings), meter.forwarding(server.metrics):
        yield Service(SiteEndpoint(server.port, server.secret))


def _browser_host(
    settings: SitesSettings, connection: SiteEndpoint, browser: BrowserSettings, judge: TrajectoryJudge
) -> EnvironmentHost:
    from environments.browser.host import ChromiumHost
    from environments.browser.process import BrowserProcess
    from environments.embedded.world import EmbeddedWorld

    return ChromiumHost(BrowserProcess(browser), lambda: EmbeddedWorld(connection, judge))


def _browserless_host(
    settings: SitesSettings, connection: None, browser: BrowserSettings, judge: TrajectoryJudge
) -> EnvironmentHost:
    from environments.browserless.host import BrowserlessHost

    return BrowserlessHost(settings, browser, judge)


def _browserless_preflight(settings: SitesSettings, wanted: Wanted) -> list[Check]:
    """Look as for the browser; faults on purpose are met there alone."""
    checks = _preflight(settings, wanted)
    if settings.faults != FaultSettings(seed=settings.faults.seed, slow_s=settings.faults.slow_s):
        found = "set, and browserless meets none"
        advice = "set run.environment to embedded, or leave them out"
        checks.append(Check("environments.embedded.faults", Status.WARN, found, advice))
    return checks


def _preflight(settings: SitesSettings, wanted: Wanted) -> list[Check]:
    """Whether the sites and collections that are named exist, each collection beside a site of its own."""
    from sites.chains.source import atoms_of
    from sites.tasks import all_templates

    try:
        chains = settings.family == "chains"
        found = (
            f"{len(atoms_of(settings.names))} atoms" if chains else f"{len(all_templates(settings.names))} templates"
        )
    except (KeyError, ValueError) as error:
        sites = Check("sites", Status.FAIL, str(error.args[0]), "correct environments.embedded.names")
    else:
        sites = Check("sites", Status.OK, f"{', '.join(settings.names)}: {found}")
    return [sites, *wanted.judged({})]


def _server(settings: SitesSettings) -> Sequence[ServiceProcess]:
    return (ServiceProcess("sites", settings.memory_mb, ", ".join(settings.names)),)


EMBEDDED = EnvironmentKind(
    settings=SitesSettings,
    tasks=embedded_tasks,
    host=_browser_host,
    service=_serve,
    preflight=_preflight,
    processes=_server,
    each_node=True,
)
"""The environment ``embedded``: the sites on a server, in Chromium."""

BROWSERLESS = EnvironmentKind(
    settings=SitesSettings,
    tasks=partial(embedded_tasks, scripted=False),
    host=_browserless_host,
    preflight=_browserless_preflight,
    browser=False,
    section="embedded",
)
"""The environment ``browserless``: the sites inside the worker's process, for tests, sweeps and demonstrations."""
