"""Where a worker's environments come from: one browser (or none) that serves several of them.

Owns the ``EnvironmentHost`` protocol and the choice of an environment by name: a built-in one, one that an
installed package offers (entry points of the group ``waymark.environments``), or ``module:name``. Invariant: a
host that was closed or has died is never started again; a new one takes its place. Must not import ray.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Protocol

from environments.environment import Environment
from environments.task_sources import TaskSource
from rollout_workers.spec import WorkerConfig

BUILT_IN = {
    "embedded": "environments.embedded.hosts:browser_host",
    "browserless": "environments.embedded.hosts:browserless_host",
    "webarena": "environments.webarena.host:WEBARENA",
    "miniwob": "environments.miniwob.host:MINIWOB",
}
"""Environment kinds by name; anything else is an entry point or ``module:name``."""
ENTRY_POINTS = "waymark.environments"
"""Group of the entry points by which an installed package offers environments."""
_HOST_METHODS = ("start", "environment", "alive", "close")


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


@dataclass(frozen=True, slots=True)
class EnvironmentKind:
    """A kind of environment: ``host`` makes a worker's host, ``tasks`` makes what draws its tasks.

    ``tasks`` is called with the options that hosts get too (``WorkerConfig.options``), which come from the recipe;
    None stands for the tasks of the embedded sites.
    """

    host: Callable[[WorkerConfig], EnvironmentHost]
    tasks: Callable[[Mapping[str, Any]], TaskSource] | None = None


def make_host(config: WorkerConfig) -> EnvironmentHost:
    """Return a new, unstarted host of the kind that the configuration names.

    Raises:
        ValueError: when it names none, or what it names does not make a host.
    """
    host = environment_kind(config.environment).host(config)
    missing = [name for name in _HOST_METHODS if not callable(getattr(host, name, None))]
    if missing:
        raise ValueError(
            f"{config.environment!r}: expected a host with the methods {', '.join(_HOST_METHODS)}, "
            f"found a {type(host).__name__} without {', '.join(missing)}"
        )
    return host


def environment_kind(name: str) -> EnvironmentKind:
    """Return the environment called ``name``.

    Raises:
        ValueError: when there is none, saying what was expected.
    """
    found = _load_kind(name)
    if isinstance(found, EnvironmentKind):
        if found.tasks is not None and not callable(found.tasks):
            raise ValueError(
                f"{name!r}: expected tasks to be a function of the host's options that returns a TaskSource, "
                f"found a {type(found.tasks).__name__}"
            )
        return found
    if not callable(found):
        raise ValueError(
            f"{name!r}: expected a function of a WorkerConfig that returns a host, or an EnvironmentKind; "
            f"found a {type(found).__name__}"
        )
    return EnvironmentKind(found)


def load(reference: str) -> Any:
    """Return what ``module:name`` names.

    Raises:
        ValueError: when it names nothing, saying which part is missing.
    """
    module, _, name = reference.partition(":")
    if not module or not name:
        raise ValueError(f"expected 'module:name', found {reference!r}")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{reference!r}: cannot import {error.name!r}; is it on the Python path of the worker?"
        ) from error
    except AttributeError as error:
        raise ValueError(f"{reference!r}: module {module!r} has no {name!r}") from error


def _load_kind(name: str) -> Any:
    if name in BUILT_IN or ":" in name:
        return load(BUILT_IN.get(name, name))
    offered = entry_points(group=ENTRY_POINTS)
    if name in offered.names:
        return load(offered[name].value)
    names = ", ".join(sorted({*BUILT_IN, *offered.names}))
    raise ValueError(f"expected an environment out of {names}, or 'module:name', found {name!r}")
