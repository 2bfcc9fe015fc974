"""How a process records metrics: one call, which does nothing until a sink is installed.

Owns the process's sink, as ``logging`` owns its handlers, and the bounds of labels. Invariants: a process that installs
no sink pays one comparison a call; what a sink gets has exactly the labels of the table, with values that it allows.
Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from telemetry.table import OTHER, RUN, Label, Metric

_NAME = re.compile(r"[\w.:/@\[\]-]{1,80}", re.ASCII)
"""Names of servers, models, splits and codes; no sentence of a page."""


class Sink(Protocol):
    """Where a process's metrics go. Safe in threads; must not fail over a value."""

    def record(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        """Add to a counter, set a gauge or observe in a histogram."""
        ...


class _Process:
    """What this process records to, for the run of this name."""

    def __init__(self) -> None:
        self.sink: Sink | None = None
        self.run = ""
        self.seen: dict[tuple[str, str], set[str]] = {}
        self.forwarded: list[Callable[[], str]] = []


_process = _Process()


def install(target: Sink | None, run: str = "") -> None:
    """Record to ``target`` from now on, for ``run``; None turns it off."""
    _process.sink, _process.run = target, _named(run) if target else ""
    _process.seen.clear()


def sink() -> Sink | None:
    """Return what this process records to."""
    return _process.sink


def run_name() -> str:
    """Return the run for which this process records, empty where it does not; actors are told it when they start."""
    return _process.run


def record(metric: Metric, value: float = 1.0, /, **labels: str) -> None:
    """Add ``value`` to a counter, set a gauge to it, or observe it in a histogram.

    Raises:
        ValueError: the table gives the metric other labels.
    """
    target = _process.sink
    if target is None:
        return
    if len(labels) != len(metric.labels):
        raise _other_labels(metric, labels)
    allowed = {label.name: _allowed(metric, label, labels) for label in metric.labels}
    target.record(metric, value, {RUN.name: _process.run, **allowed})


@contextmanager
def forwarding(read: Callable[[], str]) -> Iterator[None]:
    """Let what ``read`` returns in Prometheus' text form be told beside this process's own."""
    _process.forwarded.append(read)
    try:
        yield
    finally:
        if read in _process.forwarded:
            _process.forwarded.remove(read)


def forwarded() -> tuple[Callable[[], str], ...]:
    """Return what is told beside this process's own."""
    return tuple(_process.forwarded)


def _allowed(metric: Metric, label: Label, given: Mapping[str, str]) -> str:
    if label.name not in given:
        raise _other_labels(metric, given)
    value = str(given[label.name])
    if label.values:
        return value if value in label.values else OTHER
    seen = _process.seen.setdefault((metric.name, label.name), set())
    name = _named(value)
    if name not in seen and len(seen) >= label.most:
        return OTHER
    seen.add(name)
    return name


def _other_labels(metric: Metric, given: Mapping[str, str]) -> ValueError:
    return ValueError(
        f"{metric.name}: expected labels {[label.name for label in metric.labels]}, found {sorted(given)}"
    )


def _named(value: str) -> str:
    return value if _NAME.fullmatch(value) else OTHER
