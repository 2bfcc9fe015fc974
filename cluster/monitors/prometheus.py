"""The monitor ``prometheus``: a run's metrics at an address that Prometheus scrapes, while the run lives.

Owns the driver's endpoint. Where a recipe names it, the run's actors record too (``telemetry.table`` lists what);
theirs are told by Ray's agents, those of the sites' process by this endpoint.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cluster.errors import RecipeError
from cluster.monitors.monitor import MonitorKind
from records.bounds import at_least, require
from telemetry import meter, table

_PORTS = 65_535
_PLAYED = ("splits.", ".n")


@dataclass(frozen=True)
class PrometheusSettings:
    """Metrics for Prometheus, from the driver at an address of its own and from Ray's actors through Ray."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    host: str = "127.0.0.1"
    """Address that the driver listens at; ``0.0.0.0`` lets other machines scrape it, without a password."""

    port: int = 0
    """Port that it listens at; 0 takes a free one, which the run prints."""

    def __post_init__(self) -> None:
        """Refuse what is no address and no port."""
        require(bool(self.host) and self.host.isascii(), "host", "an address of this machine", self.host)
        at_least(self, 0, "port")
        require(self.port <= _PORTS, "port", f"at most {_PORTS}", self.port)


class Prometheus:
    """A monitor: keeps the newest numbers, and answers who scrapes them."""

    def __init__(self, out: Path, options: PrometheusSettings) -> None:
        # The command line reads recipes without it.
        from telemetry.prometheus_sink import Endpoint, PrometheusSink

        sink = PrometheusSink()
        try:
            self._endpoint = Endpoint(sink, options.host, options.port)
        except OSError as error:
            raise RecipeError(
                f"monitors.prometheus: cannot listen at {options.host}:{options.port} ({error}); choose another port, "
                "or 0 for a free one"
            ) from error
        meter.install(sink, out.resolve().name)
        meter.record(table.WORKER_LOSSES, 0)

    def numbers(self, phase: int, stage: str, values: Mapping[str, float]) -> None:
        """Keep the losses and shares of success among a stage's numbers, NaN for a split without a verdict."""
        for model in ("actor", "value", "potential"):
            name = "metrics.loss" if (stage, model) == ("clone", "actor") else f"metrics.{model}.loss"
            if name in values:
                meter.record(table.LOSS, values[name], model=model)
        first, last = _PLAYED
        for name in values:
            split = name.removeprefix(first).removesuffix(last)
            if name == f"{first}{split}{last}" and "." not in split:
                meter.record(table.SUCCESS, values.get(f"{first}{split}.success", math.nan), split=split)

    def set_aside(self, stages: Collection[tuple[int, str]], folder: Path) -> None:
        """Do nothing: gauges show the newest numbers, and counters count what happened."""

    def links(self) -> Mapping[str, str]:
        """Return the address."""
        return {"Metrics of the driver": self._endpoint.address}

    def close(self) -> None:
        """Stop answering; the process records nothing any more."""
        self._endpoint.close()
        meter.install(None)


PROMETHEUS = MonitorKind(PrometheusSettings, Prometheus)
