"""The host of environments over WebArena's sites: one Chromium, one pool of sessions, and the way to the leases.

Owns ``WEBARENA``, which ``rollout_workers.environment_hosts`` names. Settings come in
``WorkerConfig.options["webarena"]``; ``options["site_leases"]`` is the name of the run's lease desk, without
which the host has one of its own. Imports ray for such a desk only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout_workers.browser_session import BrowserSession
from rollout_workers.embedded_hosts import BrowserHost
from rollout_workers.environment import Environment
from rollout_workers.environment_hosts import EnvironmentKind
from rollout_workers.spec import WorkerConfig
from webarena.deployments import deployments_of, make_desk
from webarena.environment import WebArenaEnvironment
from webarena.hosts import resolver_rules
from webarena.judge import load_judge
from webarena.leases_desk import SiteLeases
from webarena.login_accounts import Accounts
from webarena.settings import WebArenaSettings
from webarena.sites import make_sites
from webarena.task_source import WebArenaTasks

LEASES = "site_leases"


class WebArenaHost(BrowserHost):
    """One Chromium over the sites that the settings and the environment name."""

    def __init__(self, config: WorkerConfig, settings: WebArenaSettings) -> None:
        deployments = deployments_of(settings)
        accounts = Accounts.load(settings.credentials_file)
        session = BrowserSession(config.browser, resolver_rules(deployments.values()))
        super().__init__(config, session)
        self._leases = _leases(config, settings)
        self._webarena = make_sites(
            settings, deployments, session, accounts, leases=self._leases, judge=load_judge(settings.judge)
        )

    async def environment(self) -> Environment:
        """Return a new environment in this Chromium."""
        return WebArenaEnvironment(self._session, self._webarena)

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
    problems = _problems(config, settings)
    if problems:
        raise ValueError("\n".join(["environment webarena:", *problems]))
    return WebArenaHost(config, settings)


def _leases(config: WorkerConfig, settings: WebArenaSettings) -> SiteLeases:
    name = config.options.get(LEASES)
    if not name:
        return make_desk(settings)
    from webarena.leases_ray import named_desk

    return named_desk(name, settings.lease_silence_s)


def _settings(options: Mapping[str, Any]) -> WebArenaSettings:
    found = options.get("webarena", WebArenaSettings())
    if not isinstance(found, WebArenaSettings):
        raise ValueError(f"option 'webarena': expected a recipe's WebArenaSettings, found a {type(found).__name__}")
    return found


def _problems(config: WorkerConfig, settings: WebArenaSettings) -> list[str]:
    """Return what would make episodes fail that are only waiting for their sites, one line each."""
    rollout, problems = config.settings, []
    resetting = any(deployment.reset.kind != "none" for deployment in settings.deployments)
    if rollout.workers > 1 and resetting and not config.options.get(LEASES):
        problems.append(
            f"rollout.workers: expected 1 where sites are reset, found {rollout.workers}: without a lease desk for all "
            f"of them (the option {LEASES!r}) one would reset the sites under the other's episodes"
        )
    starting_s = settings.lease_timeout_s + 2 * settings.login_timeout_s + config.browser.reset_timeout_s
    at_least = {
        "rollout.reset_deadline_s": (
            rollout.reset_deadline_s,
            starting_s,
            "webarena's waits and browser.reset_timeout_s",
        ),
        "rollout.episode_deadline_s": (
            rollout.episode_deadline_s,
            rollout.reset_deadline_s,
            "rollout.reset_deadline_s",
        ),
        "rollout.stall_timeout_s": (rollout.stall_timeout_s, rollout.episode_deadline_s, "rollout.episode_deadline_s"),
        "webarena.lease_hold_s": (settings.lease_hold_s, rollout.episode_deadline_s, "rollout.episode_deadline_s"),
    }
    for name, (found, needed, why) in at_least.items():
        if found < needed:
            problems.append(f"{name}: expected at least {needed:g} s because of {why}, found {found:g} s")
    return problems


def webarena_tasks(options: Mapping[str, Any]) -> WebArenaTasks:
    """Return what draws tasks from the files that the settings name (``webarena.task_files``)."""
    return WebArenaTasks(_settings(options).task_files)


WEBARENA = EnvironmentKind(webarena_host, webarena_tasks)
"""The environment ``webarena``."""
