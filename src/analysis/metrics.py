"""Success by groups and pass@k.

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

from analysis.intervals import by_task, wilson, wilson_of_tasks
from records.episodes import Trajectory
from records.failures import Failure

HORIZON_ENDS = (5, 10, 15, 20, 30)


@dataclass(frozen=True, slots=True)
class Rate:
    """A success rate in [0, 1] over ``n`` judged episodes, with Wilson's 95 % interval; nan over none.

    Of tasks that were played several times the interval is that of ``wilson_of_tasks``.
    """

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

    @classmethod
    def of_episodes(cls, episodes: Iterable[Episode]) -> Rate:
        """Return the rate of judged episodes, of which several may be of one task."""
        return cls.of_tasks((episode.task_id, episode.outcome == 1.0) for episode in episodes)

    @classmethod
    def of_tasks(cls, outcomes: Iterable[tuple[str, bool]]) -> Rate:
        """Return the rate of outcomes with the task of each, of which several may be of one task."""
        tasks = by_task(outcomes)
        interval = wilson_of_tasks(tasks)
        return cls(interval.value, sum(map(len, tasks)), interval.low, interval.high)


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
    """What a success table needs of an episode; a ``Trajectory`` has it."""

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
        total=Rate.of_episodes(judged),
        by_site=_grouped(judged, lambda episode: episode.site),
        by_horizon=_grouped(sorted(judged, key=lambda e: e.horizon), lambda e: horizon_bucket(e.horizon), False),
        by_template=_grouped(judged, lambda episode: episode.template),
        failures=lost_by_reason([*own, *failures]),
    )


def lost_by_reason(failures: Iterable[Failure]) -> dict[str, int]:
    """Return how many episodes were lost by ``kind/code``, in order of name."""
    return dict(sorted(Counter(f"{failure.code}" for failure in failures).items()))


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


def _grouped(episodes: Sequence[Episode], key: Callable[[Episode], str], by_name: bool = True) -> dict[str, Rate]:
    """Return the rate of each group, by name or in order of first appearance."""
    groups: dict[str, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(key(episode), []).append(episode)
    names = sorted(groups) if by_name else list(groups)
    return {name: Rate.of_episodes(groups[name]) for name in names}
