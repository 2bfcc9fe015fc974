"""The host of environments over WebArena's sites: one Chromium, one pool of sessions, and the way to the leases.

Owns ``WEBARENA``, which ``environments.kinds`` names. Of ``WorkerConfig.options`` it reads
``webarena`` (the settings), ``judge`` (how long an LLM judge is waited for) and ``site_leases`` (the name of
the run's lease desk, without which the host has one of its own). Imports ray for such a desk only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from environments.browser.environment import BrowserEnvironment
from environments.browser.session import BrowserSession
from environments.embedded.hosts import BrowserHost
from environments.environment import Environment
from environments.kinds import EnvironmentKind
from environments.webarena.judge import load_judge
from environments.webarena.leases.desk import SiteLeases
from environments.webarena.login.accounts import Accounts
from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.deployments import deployments_of, make_desk
from environments.webarena.sites.hosts import resolver_rules
from environments.webarena.sites.shared import make_sites
from environments.webarena.tasks.source import WebArenaTasks
from environments.webarena.tasks.start_pages import START_PAGES
from environments.webarena.world import WebArenaWorld
from judges.settings import JudgeSettings
from rollout_workers.spec import WorkerConfig

LEASES = "site_leases"

S = TypeVar("S")


class WebArenaHost(BrowserHost):
    """One Chromium over the sites that the settings and the environment name."""

    def __init__(self, config: WorkerConfig, settings: WebArenaSettings) -> None:
        deployments, judge = deployments_of(settings), load_judge(settings.judge)
        patience = _read(config.options, "judge", JudgeSettings, {})
        accounts = Accounts.load(settings.credentials_file)
        session = BrowserSession(config.browser, resolver_rules(deployments.values()))
        super().__init__(config, session)
        self._leases = _leases(config, settings)
        self._webarena = make_sites(
            settings,
            deployments,
            session,
            accounts,
            leases=self._leases,
            judge=judge,
            patience=patience,
        )

    async def environment(self) -> Environment:
        """Return a new environment in this Chromium."""
        return BrowserEnvironment(self._session, WebArenaWorld(self._webarena))

    async def close(self) -> None:
        """End what waits for sites, and Chromium."""
        await self._leases.close()
        await super().close()


def webarena_host(config: WorkerConfig) -> WebArenaHost:
    """Return a host over the sites.

    Raises:
        ValueError: where the settings do not fit together, saying what to set.
    """
    settings = _settings(config.options)
    rollout, resetting = config.settings, any(deployment.reset.kind != "none" for deployment in settings.deployments)
    if rollout.workers > 1 and resetting and not config.options.get(LEASES):
        raise ValueError(
            f"rollout.workers: expected 1 where sites are reset, found {rollout.workers}: without a lease desk for all "
            f"of them (the option {LEASES!r}) one would reset the sites under the other's episodes"
        )
    return WebArenaHost(config, settings)


def _leases(config: WorkerConfig, settings: WebArenaSettings) -> SiteLeases:
    name = config.options.get(LEASES)
    if not name:
        return make_desk(settings)
    from environments.webarena.leases.ray_desk import named_desk

    return named_desk(name, settings.lease_silence_s)


def _settings(options: Mapping[str, Any]) -> WebArenaSettings:
    """Return a recipe's settings, those written as plain values, or, without any, what a first look needs."""
    return _read(options, "webarena", WebArenaSettings, {"task_files": {"train": START_PAGES}})


def _read(options: Mapping[str, Any], name: str, kind: type[S], usual: Mapping[str, Any]) -> S:
    """Return the option ``name`` as settings of its kind; raise ``ValueError`` naming what is wrong in it."""
    found = options.get(name, usual)
    if isinstance(found, kind):
        return found
    try:
        return TypeAdapter(kind).validate_python(found)
    except ValidationError as error:
        raise ValueError("\n".join(_line(name, problem) for problem in error.errors(include_url=False))) from error


def _line(option: str, problem: ErrorDetails) -> str:
    where = ".".join(map(str, (option, *problem["loc"])))
    return f"option {where}: {problem['msg']}, found {problem['input']!r:.80}"


def webarena_tasks(options: Mapping[str, Any]) -> WebArenaTasks:
    """Return what draws tasks from the files that the settings name (``webarena.task_files``)."""
    return WebArenaTasks(_settings(options))


WEBARENA = EnvironmentKind(webarena_host, webarena_tasks)
"""The environment ``webarena``."""
