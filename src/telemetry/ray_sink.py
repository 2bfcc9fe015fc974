"""Metrics of a Ray actor, which Ray's agent of its node tells Prometheus as ``ray_NAME``.

Owns the process's metrics of Ray. Ray reports them every ten seconds; what an actor recorded after the last report is
lost with it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from ray.util.metrics import Counter, Gauge, Histogram

from telemetry import meter
from telemetry.table import RUN, Metric, Type


class RaySink:
    """A ``Sink`` over ``ray.util.metrics``."""

    def __init__(self) -> None:
        self._made: dict[str, Counter | Gauge | Histogram] = {}
        self._making = threading.Lock()

    def record(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        """Record one value; see ``Sink``."""
        with self._making:
            if metric.name not in self._made:
                self._made[metric.name] = _make(metric)
        made, tags = self._made[metric.name], dict(labels)
        if isinstance(made, Counter):
            if value > 0:  # Ray refuses to add nothing
                made.inc(float(value), tags=tags)
        elif isinstance(made, Gauge):
            made.set(float(value), tags=tags)
        else:
            made.observe(float(value), tags=tags)


def install(run: str) -> None:
    """Let this actor record for ``run``, and nothing where the name is empty."""
    if run:
        meter.install(RaySink(), run)


def _make(metric: Metric) -> Counter | Gauge | Histogram:
    keys = (RUN.name, *(label.name for label in metric.labels))
    if metric.type is Type.COUNTER:
        return Counter(metric.name, description=metric.text, tag_keys=keys)
    if metric.type is Type.GAUGE:
        return Gauge(metric.name, description=metric.text, tag_keys=keys)
    return Histogram(metric.name, description=metric.text, boundaries=list(metric.buckets), tag_keys=keys)
