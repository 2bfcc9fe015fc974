"""The host of environments over WebArena's sites: one Chromium, one lease desk, one pool of sessions.

Owns ``webarena_host``, which ``rollout_workers.environment_hosts`` names. Settings come in
``WorkerConfig.options["webarena"]``. Must not import ray.
"""

from __future__ import annotations

import asyncio

from rollout_workers.browser_processes import process_mark
from rollout_workers.browser_session import BrowserSession
from rollout_workers.environment import Environment
from rollout_workers.spec import WorkerConfig
from webarena.environment import WebArenaEnvironment
from webarena.hosts import resolver_rules
from webarena.login_accounts import Accounts
from webarena.reset import resetters
from webarena.settings import WebArenaSettings
from webarena.sites import deployments_of, make_sites


class WebArenaHost:
    """One Chromium over the sites that the settings and the environment name."""

    def __init__(self, config: WorkerConfig, settings: WebArenaSettings) -> None:
        deployments, resetting = deployments_of(settings), resetters(settings.deployments)
        accounts = Accounts.load(settings.credentials_file)
        self._session = BrowserSession(config.browser, resolver_rules(deployments.values()))
        self._sites, self._desk = make_sites(
            settings, deployments, self._session, accounts, resetters=resetting, judge=config.options.get("judge")
        )
        self._identity: str | None = None

    async def start(self) -> None:
        """Start Chromium and open a context, which shows that it works."""
        context = await self._session.open_context("<-loopback>")
        await context.close()
        pids = await asyncio.to_thread(lambda: self._session.pids)
        self._identity = process_mark(min(pids)) if pids else None

    async def environment(self) -> Environment:
        """Return a new environment in this Chromium."""
        return WebArenaEnvironment(self._session, self._sites)

    def alive(self) -> bool:
        """Whether Chromium's main process runs; where processes cannot be looked up it is believed to."""
        if self._identity is None:
            return True
        return process_mark(int(self._identity.partition(":")[0])) == self._identity

    async def close(self) -> None:
        """End what waits for sites, and Chromium."""
        await self._desk.close()
        await self._session.close()


def webarena_host(config: WorkerConfig) -> WebArenaHost:
    """Return a host over the sites.

    Raises:
        ValueError: where the settings do not fit together, saying what to set.
    """
    settings = config.options.get("webarena", WebArenaSettings())
    rollout = config.settings
    can_reset = any(deployment.reset.kind != "none" for deployment in settings.deployments)
    if rollout.workers > 1 and can_reset:
        raise ValueError(
            f"environment webarena: expected rollout.workers 1 where sites are reset, found {rollout.workers}: leases "
            "are kept in the worker, and another worker's reset would change the sites under its episodes; raise "
            "rollout.contexts_per_worker instead"
        )
    needed = settings.longest_reset_s + config.browser.reset_timeout_s
    if rollout.reset_deadline_s < needed:
        raise ValueError(
            f"environment webarena: expected rollout.reset_deadline_s of at least {needed:g} s (waiting for the sites, "
            f"logging in, opening the first page), found {rollout.reset_deadline_s:g} s; raise it or lower the waits "
            "in webarena"
        )
    return WebArenaHost(config, settings)
