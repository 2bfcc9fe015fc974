"""Success by groups, pass@k, and how well a score ranks outcomes.

Owns the metrics of the evaluation tables. Invariant: an episode without a verdict is counted apart
and never enters a rate. Pure functions of records and numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from analysis.intervals import wilson
from replay.records import Failure, Trajectory

HORIZON_ENDS = (5, 10, 15, 20, 30)


@dataclass(frozen=True, slots=True)
class Rate:
    """A success rate in [0, 1] over ``n`` judged episodes, with Wilson's 95 % interval; nan over none."""

    success: float
    n: int
    low: float
    high: float

    @classmethod
    def of(cls, outcomes: Iterable[bool]) -> Rate:
        """Return the rate of a group of outcomes."""
        flags = list(outcomes)
        interval = wilson(sum(flags), len(flags))
        return cls(interval.value, len(flags), interval.low, interval.high)


@dataclass(frozen=True, slots=True)
class SuccessTable:
    """Success overall and by group; ``failures`` counts episodes without a verdict by ``kind/code``."""

    total: Rate
    by_site: dict[str, Rate]
    by_horizon: dict[str, Rate]
    by_template: dict[str, Rate]
    failures: dict[str, int] = field(default_factory=dict)


def horizon_bucket(horizon: int) -> str:
    """Return the bucket of a task's expert length, such as ``6-10``; ``unknown`` where there is no expert."""
    if horizon <= 0:
        return "unknown"
    start = 1
    for end in HORIZON_ENDS:
        if horizon <= end:
            return f"{start}-{end}"
        start = end + 1
    return f"{start}+"


class Episode(Protocol):
    """What a success table needs of an episode; a ``Trajectory`` and a rollout's summary both have it."""

    @property
    def task_id(self) -> str:
        """Id of the task played."""
        ...

    @property
    def site(self) -> str:
        """Site that results are grouped by."""
        ...

    @property
    def template(self) -> str:
        """Template that results are grouped by."""
        ...

    @property
    def horizon(self) -> int:
        """Steps of the scripted expert, 0 where there is none."""
        ...

    @property
    def outcome(self) -> float | None:
        """1.0 solved, 0.0 not, None without a verdict."""
        ...


def success_table(episodes: Iterable[Episode], failures: Iterable[Failure] = ()) -> SuccessTable:
    """Return success overall, by site, by horizon bucket and by template, each with its interval.

    ``failures`` are those of episodes that are known only by why they were lost; a ``Trajectory``
    among ``episodes`` brings its own.
    """
    everything = list(episodes)
    judged = [episode for episode in everything if episode.outcome is not None]
    own = [e.failure for e in everything if isinstance(e, Trajectory) and e.failure is not None]
    return SuccessTable(
        total=Rate.of(episode.outcome == 1.0 for episode in judged),
        by_site=_grouped(judged, lambda episode: episode.site),
        by_horizon=_grouped(sorted(judged, key=lambda e: e.horizon), lambda e: horizon_bucket(e.horizon), False),
        by_template=_grouped(judged, lambda episode: episode.template),
        failures=lost_by_reason([*own, *failures]),
    )


def lost_by_reason(failures: Iterable[Failure]) -> dict[str, int]:
    """Return how many episodes were lost by ``kind/code``, in order of name."""
    return dict(sorted(Counter(f"{failure.kind}/{failure.code}" for failure in failures).items()))


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Return the unbiased estimate 1 - C(n-c, k) / C(n, k) that one of k samples succeeds (Chen et al. 2021).

    Raises ``ValueError`` unless 1 <= k <= n and 0 <= correct <= n.
    """
    if not (1 <= k <= n and 0 <= correct <= n):
        raise ValueError(f"expected 1 <= k <= n and 0 <= correct <= n, found n={n}, correct={correct}, k={k}")
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def mean_pass_at_k(episodes: Iterable[Episode], k: int) -> float:
    """Return pass@k averaged over the tasks that have at least k judged episodes; nan where none has."""
    counts: dict[str, list[int]] = {}
    for episode in episodes:
        if episode.outcome is not None:
            tally = counts.setdefault(episode.task_id, [0, 0])
            tally[0] += 1
            tally[1] += episode.outcome == 1.0
    estimates = [pass_at_k(n, correct, k) for n, correct in counts.values() if n >= k]
    return float(np.mean(estimates)) if estimates else math.nan


def auc(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """Return the area under the ROC curve: P(score of a positive > score of a negative), ties half.

    nan where one of the classes is missing. Raises ``ValueError`` where the lengths differ.
    """
    values, positive = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=bool)
    if values.shape != positive.shape:
        raise ValueError(f"expected one label a score, found {values.size} scores and {positive.size} labels")
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    if not n_positive or not n_negative:
        return math.nan
    rank_sum = float(average_ranks(values)[positive].sum())
    return (rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's rank correlation, ties by average ranks; nan for fewer than two points or a constant side."""
    a, b = _pair(first, second)
    if a.size < 2:
        return math.nan
    ranks_a, ranks_b = average_ranks(a), average_ranks(b)
    ranks_a, ranks_b = ranks_a - ranks_a.mean(), ranks_b - ranks_b.mean()
    scale = math.sqrt(float(ranks_a @ ranks_a) * float(ranks_b @ ranks_b))
    return float(ranks_a @ ranks_b) / scale if scale > 0 else math.nan


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Kendall's tau-b, which corrects for ties; nan for fewer than two points or a constant side.

    Compares every pair (quadratic time, linear memory): meant for up to a few thousand points.
    """
    a, b = _pair(first, second)
    agreement, pairs_a, pairs_b = 0.0, 0.0, 0.0
    for index in range(a.size - 1):
        signs_a = np.sign(a[index + 1 :] - a[index])
        signs_b = np.sign(b[index + 1 :] - b[index])
        agreement += float(signs_a @ signs_b)
        pairs_a += float(np.count_nonzero(signs_a))
        pairs_b += float(np.count_nonzero(signs_b))
    scale = math.sqrt(pairs_a * pairs_b)
    return agreement / scale if scale > 0 else math.nan


def average_ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return ranks from 1, equal values sharing the mean of the ranks they span: (N,) -> (N,)."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((2 * last - counts + 1) / 2)[inverse]


def _grouped(episodes: Sequence[Episode], key: Callable[[Episode], str], by_name: bool = True) -> dict[str, Rate]:
    """Return the rate of each group, by name or in order of first appearance."""
    groups: dict[str, list[bool]] = {}
    for episode in episodes:
        groups.setdefault(key(episode), []).append(episode.outcome == 1.0)
    names = sorted(groups) if by_name else list(groups)
    return {name: Rate.of(groups[name]) for name in names}


def _pair(first: Sequence[float], second: Sequence[float]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"expected two sequences of one length, found shapes {a.shape} and {b.shape}")
    return a, b
