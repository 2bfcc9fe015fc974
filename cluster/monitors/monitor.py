"""The plug point of monitors: what is told a run's numbers as they happen, and how a monitor is found by its name.

Owns ``Monitor``, the registry ``MONITORS`` and ``Monitors``, all those of one run. Invariants: each number of a
recorded stage is told once, unless the run was killed between the record and the telling; a monitor is told its own
options only; every monitor passes ``tests/cluster/test_monitors.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from plugs.registry import Registry

S = TypeVar("S")
DEFAULT = ("metrics_log", "tensorboard")
"""The monitors of a recipe that names none."""


class Monitor(Protocol):
    """Something that is told numbers; every call ends in a short time, for the run waits for it."""

    def numbers(self, phase: int, stage: str, values: Mapping[str, float]) -> None:
        """Take the numbers of a stage that is complete; they may be infinite or no number."""
        ...

    def set_aside(self, stages: Collection[tuple[int, str]], folder: Path) -> None:
        """Let the numbers of these stages (phase, name) count no more, for they are done again.

        What is moved goes to ``folder``. Doing it again after it was cut short does the rest.
        """
        ...

    def links(self) -> Mapping[str, str]:
        """Return where a person sees the numbers, each with what it is; the run shows it when it starts."""
        ...

    def close(self) -> None:
        """Write what is not written yet."""
        ...


@dataclass(frozen=True, slots=True)
class MonitorKind(Generic[S]):
    """A kind of monitor."""

    settings: type[S]
    """The class of its options, a frozen dataclass that forbids extra keys."""
    start: Callable[[Path, S], Monitor]
    """Opens one for a run folder, at each start of the run; what an earlier start wrote is only added to."""


MONITORS: Registry[MonitorKind[Any]] = Registry(
    "monitor",
    MonitorKind,
    "waymark.monitors",
    {
        "metrics_log": "cluster.run_folder.metrics_log:METRICS_LOG",
        "tensorboard": "cluster.monitors.tensorboard:TENSORBOARD",
        "prometheus": "cluster.monitors.prometheus:PROMETHEUS",
    },
)
"""Monitors by name."""


class Monitors:
    """Context manager over the monitors of one run, each with its settings by name."""

    def __init__(self, out: Path, settings: Mapping[str, object]) -> None:
        self._out = out
        self._settings = settings
        self._running: list[Monitor] = []
        self._stack = ExitStack()

    def numbers(self, phase: int, stage: str, values: Mapping[str, float]) -> None:
        """Tell all of them a stage's numbers."""
        for monitor in self._running:
            monitor.numbers(phase, stage, values)

    def set_aside(self, stages: Collection[tuple[int, str]], folder: Path) -> None:
        """Tell all of them that these stages are done again."""
        for monitor in self._running:
            monitor.set_aside(stages, folder)

    def links(self) -> dict[str, str]:
        """Return where a person sees what all of them are told."""
        return {what: where for monitor in self._running for what, where in monitor.links().items()}

    def __enter__(self) -> Monitors:
        """Start them."""
        with ExitStack() as started:
            for name, settings in self._settings.items():
                monitor = MONITORS.find(name).start(self._out, settings)
                started.callback(monitor.close)
                self._running.append(monitor)
            self._stack = started.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all of them."""
        self._running.clear()
        self._stack.__exit__(kind, error, trace)
