"""The results of evaluations and phases, as they are stored, tabulated, drawn and compared.

Owns the result records. Invariants: a rate over no episode is None, never 0; every episode without a
verdict is counted by its reason. Records only; metrics are computed in ``analysis.metrics``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from analysis.agreement import Agreement
from analysis.metrics import Episode, Rate, mean_pass_at_k, success_table
from records.failures import Failure


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

    ``pass_at`` maps k (as text) to pass@k; it is empty for one greedy pass. ``planning`` says where agents were stuck
    and what planning did (``rollout_workers.planning.numbers``); it is empty where nobody asked.
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
    planning: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, episodes: Iterable[Episode], failures: Iterable[Failure] = (), passes: int = 1) -> SplitResult:
        """Return the result of one evaluation; ``failures`` are those of lost episodes not among ``episodes``."""
        episodes = list(episodes)
        table = success_table(episodes, failures)
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

    def as_json(self) -> str:
        """Return the text of a result's file."""
        return json.dumps(asdict(self), indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What the perplexity filter did with the stored successes: ``kept``, ``dropped``, and the reasons with counts."""

    kept: int = 0
    dropped: int = 0
    reasons: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LabelResult:
    """What judges said of a phase's episodes after they were played, by subject (outcome, milestones, steps).

    ``judges`` names them; ``labelled`` and ``failures`` (by ``kind/code``) count episodes. ``success`` is that of the
    labels of outcomes, ``agreement`` compares the verdicts that episodes were played with (first) with them (second).
    """

    judges: dict[str, str]
    labelled: dict[str, int]
    failures: dict[str, dict[str, int]]
    success: GroupResult | None
    agreement: Agreement | None
    cost_usd: float


@dataclass(frozen=True, slots=True)
class PhaseSummary:
    """The numbers of one phase; phase 0 is the warm start.

    ``evaluation`` maps a split to its result after the phase; ``rollout`` is the sampled success of the phase's own
    episodes by the verdicts that they were played with, ``labels`` what judges said of them afterwards, where the
    recipe names any; ``losses`` are means over the phase. ``seconds`` maps a stage to the wall time of the start that
    completed it, and ``env_steps_per_second`` is that start's over the rollout stage, None where it played nothing.
    """

    phase: int
    evaluation: dict[str, SplitResult] = field(default_factory=dict)
    rollout: GroupResult | None = None
    replay: ReplayResult | None = None
    losses: dict[str, float] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    env_steps_per_second: float | None = None
    labels: LabelResult | None = None


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


def evaluated_splits(phases: Sequence[PhaseSummary]) -> list[str]:
    """Return the splits that any phase was evaluated on, in the order in which they appear."""
    return list(dict.fromkeys(split for phase in phases for split in phase.evaluation))


def evaluated_sites(phases: Sequence[PhaseSummary], split: str) -> list[str]:
    """Return the sites of a split's evaluations, sorted."""
    return sorted({site for phase in phases if split in phase.evaluation for site in phase.evaluation[split].by_site})


def _groups(rates: Mapping[str, Rate]) -> dict[str, GroupResult]:
    return {name: GroupResult.of(rate) for name, rate in rates.items()}
