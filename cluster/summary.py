"""The run's numbers as one JSON file, ``OUT/summary.json``.

Owns the schema that benchmarks and users read; it is described field by field in
``docs/reference/summary.md`` and only ever grows within one ``schema`` number. Invariants: a number
that does not exist is ``null``, never 0 and never NaN; the file is replaced whole.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from analysis.metrics import Rate, mean_pass_at_k, success_table
from cluster.durable import write_atomic
from cluster.errors import ManifestError
from replay.records import Trajectory

SCHEMA = 1
FILE_NAME = "summary.json"


@dataclass(frozen=True, slots=True)
class GroupResult:
    """A success rate in [0, 1] over ``n`` judged episodes with its 95 % interval; None over none."""

    success: float | None
    n: int
    low: float
    high: float

    @classmethod
    def of(cls, rate: Rate) -> GroupResult:
        """Return a rate with nan turned into None."""
        return cls(None if math.isnan(rate.success) else rate.success, rate.n, rate.low, rate.high)


@dataclass(frozen=True, slots=True)
class SplitResult:
    """One evaluation on one split. ``lost`` counts episodes without a verdict by ``kind/code``.

    ``pass_at`` maps k (as text) to pass@k; it is empty for one greedy pass.
    """

    success: float | None
    n: int
    low: float
    high: float
    by_site: dict[str, GroupResult] = field(default_factory=dict)
    by_horizon: dict[str, GroupResult] = field(default_factory=dict)
    by_template: dict[str, GroupResult] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    pass_at: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, trajectories: Iterable[Trajectory], passes: int = 1) -> SplitResult:
        """Return the result of the episodes of one evaluation."""
        episodes = list(trajectories)
        table = success_table(episodes)
        total = GroupResult.of(table.total)
        estimates = {str(k): mean_pass_at_k(episodes, k) for k in range(1, passes + 1)} if passes > 1 else {}
        return cls(
            total.success,
            total.n,
            total.low,
            total.high,
            by_site=_groups(table.by_site),
            by_horizon=_groups(table.by_horizon),
            by_template=_groups(table.by_template),
            lost=table.failures,
            pass_at={k: value for k, value in estimates.items() if not math.isnan(value)},
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SplitResult:
        """Return the result that ``asdict`` wrote."""
        groups = ("by_site", "by_horizon", "by_template")
        parsed = {name: {key: GroupResult(**rate) for key, rate in data[name].items()} for name in groups}
        return cls(**{**data, **parsed})


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What the perplexity filter did with the stored successes: ``kept``, ``dropped``, and the reasons with counts."""

    kept: int = 0
    dropped: int = 0
    reasons: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PhaseSummary:
    """The numbers of one phase; phase 0 is the warm start.

    ``evaluation`` maps a split to its result after the phase; ``rollout`` is the sampled success of
    the phase's own episodes; ``losses`` are means over the phase; ``seconds`` maps a stage to its
    wall time; ``env_steps_per_second`` is over the rollout stage.
    """

    phase: int
    evaluation: dict[str, SplitResult] = field(default_factory=dict)
    rollout: GroupResult | None = None
    replay: ReplayResult | None = None
    losses: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    env_steps_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class EpisodeCounts:
    """Every episode of the run: ``dispatched`` = ``completed`` + the sum of ``failed`` (by ``kind/code``)."""

    dispatched: int = 0
    completed: int = 0
    failed: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse counts that lose an episode."""
        accounted = self.completed + sum(self.failed.values())
        if accounted != self.dispatched:
            raise ValueError(f"{self.dispatched} episodes were dispatched but {accounted} are accounted for")

    def __add__(self, other: EpisodeCounts) -> EpisodeCounts:
        """Return the counts of both together."""
        failed = {
            key: self.failed.get(key, 0) + other.failed.get(key, 0) for key in sorted({*self.failed, *other.failed})
        }
        return EpisodeCounts(self.dispatched + other.dispatched, self.completed + other.completed, failed)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The whole run; ``complete`` says whether every phase of the recipe is in it, ``seconds`` is wall time."""

    name: str
    config_hash: str
    seeds: dict[str, int]
    versions: dict[str, str | None]
    phases: tuple[PhaseSummary, ...]
    episodes: EpisodeCounts
    complete: bool = False
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the summary in the documented schema."""
        data = asdict(self)
        counts = data.pop("episodes")
        data["episodes"] = {
            "dispatched": counts["dispatched"],
            "completed": counts["completed"],
            "by_failure": counts["failed"],
        }
        finite: dict[str, Any] = _finite({"schema": SCHEMA, **data})
        return finite


def write_summary(out: Path, summary: RunSummary) -> Path:
    """Write ``OUT/summary.json`` and return its path."""
    path = out / FILE_NAME
    write_atomic(path, json.dumps(summary.to_json(), indent=1, allow_nan=False) + "\n")
    return path


def read_summary(out: Path) -> dict[str, Any]:
    """Return the JSON of a run's summary; raise ``ManifestError`` where it is missing or of another schema."""
    path = out / FILE_NAME
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ManifestError(f"cannot read {path}: {error}") from error
    if data.get("schema") != SCHEMA:
        raise ManifestError(f"{path}: expected summary schema {SCHEMA}, found {data.get('schema')}")
    return data


def _groups(rates: Mapping[str, Rate]) -> dict[str, GroupResult]:
    return {name: GroupResult.of(rate) for name, rate in rates.items()}


def _finite(value: Any) -> Any:
    """Replace numbers that JSON cannot hold by None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(child) for key, child in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(child) for child in value]
    return value
