"""The plug point of environments: what a kind of environment brings, and how a kind is found by its name.

Owns ``EnvironmentKind``, the ``EnvironmentHost`` protocol and the registry ``KINDS``. Invariants: a kind is told its
own settings and nothing of another's; a host that was closed or has died is never started again, a new one takes its
place. Must not import ray, nor anything of a browser: a kind imports its host when one is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from environments.admission import Admission
from environments.browser.settings import BrowserSettings
from environments.environment import Environment
from environments.task_sources import TaskSource
from judges.interface import TrajectoryJudge
from judges.kinds import TasksBySplit
from plugs.options import read_options
from plugs.registry import Registry
from records.checks import Check

S = TypeVar("S")
C = TypeVar("C")

_HOST_METHODS = ("start", "environment", "alive", "close")


class EnvironmentHost(Protocol):
    """One browser process (or none) and the environments in it."""

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
class Service(Generic[C]):
    """What a run has running for all episodes of a kind.

    Hosts get its ``connection``, which can be pickled; ``admission`` is asked before an episode is sent, where there is
    one.
    """

    connection: C
    admission: Admission | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run asks of its environment, for a look before it starts.

    ``tasks`` is the number of tasks by split; ``judged`` returns what the run's judge says of the tasks that it is to
    judge; ``reset_s`` and ``episode_s`` bound a reset and an episode, ``stall_s`` the time without news, in seconds.
    ``elsewhere`` is set where workers may run on other machines, ``first_pages`` where the driver, too, opens tasks'
    first pages.
    """

    tasks: Mapping[str, int]
    judged: Callable[[TasksBySplit], list[Check]]
    reset_s: float
    episode_s: float
    stall_s: float
    elsewhere: bool
    first_pages: bool = False


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """A process that a kind's service starts, for the resource plan; memory in MiB."""

    name: str
    memory_mb: int
    note: str = ""


@contextmanager
def no_service(settings: object) -> Iterator[Service[None]]:
    """Run nothing."""
    yield Service(None)


def judge_only(settings: object, wanted: Wanted) -> list[Check]:
    """Look at nothing but the judge."""
    return wanted.judged({})


def no_processes(settings: object) -> Sequence[ServiceProcess]:
    """Start no process."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentKind(Generic[S, C]):
    """A kind of environment, each part a function of its ``settings``."""

    settings: type[S]
    """The class of its options, a frozen dataclass that forbids extra keys and has a default for everything."""
    tasks: Callable[[S], TaskSource]
    """Draws its tasks: training tasks, evaluation sets, and what the curriculum asks for."""
    host: Callable[[S, C, BrowserSettings, TrajectoryJudge], EnvironmentHost]
    """Makes what plays it in a worker, from the service's connection, the browser's settings and the judge of its
    episodes. A host that has died, or in which only infrastructure failures happen, is never started again: the worker
    makes a new one."""
    service: Callable[[S], AbstractContextManager[Service[C]]] = no_service  # type: ignore[assignment]
    """What all workers share: entered by the driver once a run."""
    preflight: Callable[[S, Wanted], list[Check]] = judge_only
    """Looks before a run whether it can work, for ``waymark check``."""
    processes: Callable[[S], Sequence[ServiceProcess]] = no_processes
    """Names what the service starts, for the resource plan."""
    each_node: bool = False
    """Whether the service is entered on each node where workers of the kind are, because it listens to its own node
    alone; there is no admission then."""
    browser: bool = True
    """Whether a worker needs a Chromium. An environment without a browser says False; otherwise ``waymark check``
    fails where there is no Chromium."""
    section: str = ""
    """The name in a recipe's ``environments`` under which the settings stand, where that is another kind's."""
    first_look: Mapping[str, object] = field(default_factory=dict)
    """The options that ``waymark env check`` takes where none are given."""

    def read(self, options: Mapping[str, object] | S, where: str) -> S:
        """Return options as the kind's settings; raise ``ValueError``, a line for each problem, naming ``where``."""
        return read_options(self.settings, options, where)


KINDS: Registry[EnvironmentKind[Any, Any]] = Registry(
    what="environment",
    kind=EnvironmentKind,
    group="waymark.environments",
    own={
        "embedded": "environments.embedded.kind:EMBEDDED",
        "browserless": "environments.embedded.kind:BROWSERLESS",
        "webarena": "environments.webarena.kind:WEBARENA",
        "miniwob": "environments.miniwob.kind:MINIWOB",
    },
)
"""Every kind of environment that there is."""


def make_host(
    name: str, settings: object, connection: object, browser: BrowserSettings, judge: TrajectoryJudge
) -> EnvironmentHost:
    """Return a new, unstarted host of the kind called ``name``.

    Raises:
        ValueError: when there is no such kind, its settings are wrong, or what it makes is no host.
    """
    kind = KINDS.find(name)
    host = kind.host(kind.read(settings, name), connection, browser, judge)
    missing = [method for method in _HOST_METHODS if not callable(getattr(host, method, None))]
    if missing:
        raise ValueError(
            f"{name!r}: expected a host with the methods {', '.join(_HOST_METHODS)}, "
            f"found a {type(host).__name__} without {', '.join(missing)}"
        )
    return host
