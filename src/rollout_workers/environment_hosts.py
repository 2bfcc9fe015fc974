"""Where a worker's environments come from: one browser (or none) that serves several of them.

Owns the ``EnvironmentHost`` protocol and the choice of a host by name. Invariant: a host that was
closed or has died is never started again; a new one takes its place. Must not import ray.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from rollout_workers.environment import Environment
from rollout_workers.spec import WorkerConfig

BUILT_IN = {
    "embedded": "rollout_workers.embedded_hosts:browser_host",
    "browserless": "rollout_workers.embedded_hosts:browserless_host",
}
"""Environment kinds by name; anything else is ``module:function``."""


class EnvironmentHost(Protocol):
    """One browser process and the environments in it."""

    async def start(self) -> None:
        """Start the browser; raise ``EpisodeFailed`` (infra) when it does not start."""
        ...

    async def environment(self) -> Environment:
        """Return a new environment."""
        ...

    def alive(self) -> bool:
        """Whether the browser still runs."""
        ...

    async def close(self) -> None:
        """Release everything; safe to call twice, and on a host whose browser has died."""
        ...


def make_host(config: WorkerConfig) -> EnvironmentHost:
    """Return a new, unstarted host of the kind that the configuration names."""
    host: EnvironmentHost = load(BUILT_IN.get(config.environment, config.environment))(config)
    return host


def load(reference: str) -> Callable[..., Any]:
    """Return what ``module:function`` names.

    Raises:
        ValueError: when it names nothing, saying which part is missing.
    """
    module, _, name = reference.partition(":")
    if not module or not name:
        raise ValueError(f"expected one of {', '.join(BUILT_IN)} or 'module:function', found {reference!r}")
    try:
        found: Callable[..., Any] = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{reference!r}: cannot import {error.name!r}; is it on the Python path of the worker?"
        ) from error
    except AttributeError as error:
        raise ValueError(f"{reference!r}: module {module!r} has no {name!r}") from error
    return found
