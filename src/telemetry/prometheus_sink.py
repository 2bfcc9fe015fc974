"""Metrics of a process outside Ray, as Prometheus reads them, and the address where it does.

Owns the process's registry, its text, and ``Endpoint``. Invariants: a scrape waits for no run and a run for no scrape;
a process whose metrics are forwarded and that does not answer leaves its own out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    start_http_server,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from telemetry import meter
from telemetry.table import RUN, Metric, Type

logger = logging.getLogger(__name__)
disable_created_metrics()  # a second series for each counter, of which nobody asks
_END_S = 5.0
"""Fixed: the endpoint's thread looks for its end twice a second."""


class PrometheusSink:
    """A ``Sink`` over ``prometheus_client``."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._made: dict[str, Counter | Gauge | Histogram] = {}
        self._making = threading.Lock()

    def record(self, metric: Metric, value: float, labels: Mapping[str, str]) -> None:
        """Record one value; see ``Sink``."""
        with self._making:
            if metric.name not in self._made:
                self._made[metric.name] = self._make(metric)
        made = self._made[metric.name].labels(**labels)
        if isinstance(made, Counter):
            made.inc(value)
        elif isinstance(made, Gauge):
            made.set(value)
        else:
            made.observe(value)

    def text(self) -> str:
        """Return everything as Prometheus' text form."""
        return generate_latest(self.registry).decode()

    def _make(self, metric: Metric) -> Counter | Gauge | Histogram:
        keys = (RUN.name, *(label.name for label in metric.labels))
        if metric.type is Type.COUNTER:
            return Counter(metric.name, metric.text, keys, registry=self.registry)
        if metric.type is Type.GAUGE:
            return Gauge(metric.name, metric.text, keys, registry=self.registry)
        return Histogram(metric.name, metric.text, keys, registry=self.registry, buckets=metric.buckets)


class _Forwarded(Collector):
    """The metrics of other processes of this machine that are told here."""

    def collect(self) -> Iterator[Family]:
        """Yield what they say now; what several say of the same thing is added up, as are the sites of all nodes."""
        told: dict[str, Family] = {}
        sums: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
        for read in meter.forwarded():
            try:
                families = list(text_string_to_metric_families(read()))
            except (OSError, ValueError) as error:
                logger.info("metrics that are forwarded could not be read: %s", error)
                continue
            for family in families:
                told.setdefault(family.name, Family(family.name, family.documentation, family.type))
                values = sums.setdefault(family.name, {})
                for sample in family.samples:
                    key = sample.name, tuple(sample.labels.items())
                    values[key] = values.get(key, 0.0) + sample.value
        for name, family in told.items():
            for (sample_name, labels), value in sums[name].items():
                family.add_sample(sample_name, dict(labels), value)
            yield family


class Endpoint:
    """``http://HOST:PORT/metrics`` in a thread; ``port`` 0 takes a free one. Raises ``OSError`` where it is taken."""

    def __init__(self, sink: PrometheusSink, host: str, port: int) -> None:
        sink.registry.register(_Forwarded())
        self._server, self._thread = start_http_server(port, host, sink.registry)
        self.address = f"http://{host}:{self._server.server_port}/metrics"

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_END_S)
