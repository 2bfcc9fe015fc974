"""WebArena's containers as a kind of environment.

Owns ``WEBARENA``. Invariant: all processes of a run, on whatever machine, mean the same sites: those that the driver's
settings and environment variables name.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from environments.browser.settings import BrowserSettings
from environments.kinds import EnvironmentHost, EnvironmentKind, Service, Wanted
from environments.task_sources import TaskSource
from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.deployments import make_desk, with_addresses
from environments.webarena.tasks.source import WebArenaTasks
from environments.webarena.tasks.start_pages import START_PAGES
from judges.interface import TrajectoryJudge
from records.checks import Check


@dataclass(frozen=True, slots=True)
class Sites:
    """What the driver tells its workers: the settings with all addresses in them, and its lease desk's name if any."""

    settings: WebArenaSettings
    desk: str = ""


@contextmanager
def _lease_desk(settings: WebArenaSettings) -> Iterator[Service[Sites]]:
    """Run the lease desk of all workers; outside Ray every host has one of its own."""
    settings = with_addresses(settings)
    if "ray" not in sys.modules:  # it leaves its mark in the environment of whoever imports it
        yield Service(Sites(settings))
        return
    from environments.webarena.leases.ray_desk import start_desk

    name = f"waymark-{secrets.token_hex(8)}-site-leases"
    desk = start_desk(settings, name)
    yield Service(Sites(settings, name))
    del desk


def _host(
    settings: WebArenaSettings, connection: Sites, browser: BrowserSettings, judge: TrajectoryJudge
) -> EnvironmentHost:
    from environments.webarena.host import WebArenaHost

    settings = connection.settings
    if not connection.desk:
        return WebArenaHost(settings, make_desk(settings), browser, judge)
    from environments.webarena.leases.ray_desk import named_desk

    return WebArenaHost(settings, named_desk(connection.desk, settings.lease_silence_s), browser, judge)


def _tasks(settings: WebArenaSettings) -> TaskSource:
    return WebArenaTasks(settings)


def _preflight(settings: WebArenaSettings, wanted: Wanted) -> list[Check]:
    from environments.webarena.preflight import look

    return look(settings, wanted)


WEBARENA = EnvironmentKind(
    settings=WebArenaSettings,
    tasks=_tasks,
    host=_host,
    service=_lease_desk,
    preflight=_preflight,
    first_look={"task_files": {"train": START_PAGES}},
)
"""The environment ``webarena``."""
