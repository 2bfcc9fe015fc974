"""Which way a deployment's sites are reset, as its settings say."""

from __future__ import annotations

from collections.abc import Mapping

from environments.webarena.reset.command import CommandReset
from environments.webarena.reset.http import HttpReset
from environments.webarena.reset.kubernetes import KubernetesReset
from environments.webarena.reset.protocol import Resetter
from environments.webarena.settings import DeploymentSettings, ResetSettings
from environments.webarena.sites.addresses import SITES
from plugs.registry import load

POLL_S = 5.0
"""Fixed: a pace within ``reset.timeout_s``, which is minutes."""
_STATUS_S = 30.0
"""Fixed: a reset server that does not say in that time whether it is done stands still."""
_PODS = "environments.webarena.reset.in_cluster:InClusterPods"


class ResetUnavailable(ValueError):
    """The configured way of resetting is not there; the message says what to use instead."""


def resetters(deployments: tuple[DeploymentSettings, ...], names: tuple[str, ...] = SITES) -> Mapping[str, Resetter]:
    """Return a resetter for each deployment of the sites called ``names`` that has one.

    Raises:
        ResetUnavailable: for a kind that needs something that is not there.
    """
    made = {deployment.name: make_resetter(deployment.reset, names) for deployment in deployments}
    return {name: resetter for name, resetter in made.items() if resetter is not None}


def make_resetter(settings: ResetSettings, names: tuple[str, ...] = SITES) -> Resetter | None:
    """Return the resetter that ``settings`` ask for, None where there is to be none; see ``resetters``."""
    if settings.kind == "http":
        return HttpReset(
            settings.url,
            timeout_s=settings.timeout_s,
            poll_s=POLL_S,
            status_timeout_s=_STATUS_S,
        )
    if settings.kind == "command":
        return CommandReset(settings.command, settings.timeout_s, names)
    if settings.kind == "kubernetes":
        return _kubernetes(settings)
    return None


def _kubernetes(settings: ResetSettings) -> Resetter:
    try:
        make = load(settings.pods or _PODS)
        if not callable(make):
            raise ValueError(f"expected a function that makes a Pods, found a {type(make).__name__}")
        return KubernetesReset(make(), timeout_s=settings.timeout_s, poll_s=POLL_S)
    except ValueError as error:
        raise ResetUnavailable(f"{'reset.pods' if settings.pods else 'reset.kind kubernetes'}: {error}") from error
