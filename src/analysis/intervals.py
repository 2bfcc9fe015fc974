"""Intervals and paired tests for success rates.

Owns the statistics every number we report goes through. Pure functions of numbers; random ones take
a seed. scipy is imported where it is used: it takes half a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Z95 = 1.959963984540054
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Interval:
    """A point estimate with the ends of its interval."""

    value: float
    low: float
    high: float


def wilson(successes: int, n: int, z: float = Z95) -> Interval:
    """Return the success rate of ``successes`` out of ``n`` with Wilson's score interval (Wilson 1927).

    With ``n`` 0 nothing is known: the value is nan and the interval is [0, 1]. Raises ``ValueError``
    where the counts are impossible.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"expected 0 <= successes <= n, found {successes} of {n}")
    return _wilson(successes / n, n, z) if n else Interval(math.nan, 0.0, 1.0)


def wilson_of_tasks(tasks: Sequence[Sequence[bool]], z: float = Z95) -> Interval:
    """Return the success rate of tasks that were played several times each, with Wilson's interval for so many tasks.

    Passes of one task are alike, so that the episodes count as fewer (``worth_of_tasks``). With one pass each it is
    ``wilson``.
    """
    episodes = sum(map(len, tasks))
    solved = sum(map(sum, tasks))
    if sum(map(bool, map(len, tasks))) in (0, episodes):
        return wilson(solved, episodes, z)
    return _wilson(solved / episodes, worth_of_tasks(tasks), z)


def by_task(outcomes: Iterable[tuple[str, bool]]) -> list[list[bool]]:
    """Return outcomes, each with its task's name, task by task."""
    found: dict[str, list[bool]] = {}
    for task, outcome in outcomes:
        found.setdefault(task, []).append(outcome)
    return list(found.values())


def worth_of_tasks(passes: Sequence[Sequence[bool]]) -> float:
    """Return as how many independent episodes those of tasks count that were played several times each.

    They give the mean the variance that it has over tasks (Korn and Graubard 1998). They are never more than there
    are episodes, as many as tasks where all tasks ended alike, and one for one task; 0 where there are none.
    """
    played = [np.asarray(task, dtype=np.float64) for task in passes if len(task)]
    episodes, tasks = sum(len(task) for task in played), len(played)
    if tasks in (0, 1, episodes):
        return float(tasks)
    rate = float(sum(task.sum() for task in played)) / episodes
    spread = sum(float((task - rate).sum()) ** 2 for task in played) / episodes**2 * tasks / (tasks - 1)
    return min(rate * (1 - rate) / spread, float(episodes)) if spread else float(tasks)


def _wilson(rate: float, n: float, z: float) -> Interval:
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if rate == 0 else max(0.0, centre - half)
    high = 1.0 if rate == 1 else min(1.0, centre + half)
    return Interval(rate, low, high)


def mean_of_seeds(outcomes: Sequence[Mapping[str, float]], counted: Sequence[float], within: Interval) -> Interval:
    """Return the mean of the seeds' means over tasks with its 95 % interval for other seeds and other tasks.

    ``outcomes[s]`` holds seed s's outcome of each of its tasks, in [``within.low``, ``within.high``]. Seeds and tasks
    are crossed: what makes a task hard is alike in all seeds, so that tasks count once, however often they are played.
    The variance of the mean over tasks, noise included, is turned into so many independent outcomes, with those
    ``counted`` in beside them: +1 and -1 for differences (Bonett and Price 2012), two of 0 and of 1 for levels (Agresti
    and Coull 1998), so that outcomes that are all alike still leave a width. What the seeds' means differ by beyond
    that noise is widened by Student's quantile for so few seeds. Of one seed nothing is known of others: its interval
    is for other tasks only. Raises ``ValueError`` where a seed is empty.
    """
    if not outcomes or not all(outcomes):
        counts = [len(run) for run in outcomes]
        raise ValueError(f"expected at least one outcome for every seed, found counts {counts}")
    seeds, tasks = len(outcomes), list(dict.fromkeys(task for run in outcomes for task in run))
    values = np.array([[run.get(task, math.nan) for task in tasks] for run in outcomes])
    shares = 1 / np.sum(~np.isnan(values), axis=1)
    means = np.nanmean(values, axis=1)
    mean, square = float(means.mean()), float(np.mean(np.nansum(values**2, axis=1) * shares))
    of_tasks, between = _variances(values - means[:, None], shares, means)
    spread, most = square - mean**2, float(np.sum(~np.isnan(values)))
    worth = min(max(spread / of_tasks, 1.0), most) if of_tasks > ROUNDING else float(len(tasks))
    total = worth + len(counted)
    centre = (mean * worth + sum(counted)) / total
    variance = ((square * worth + sum(extra**2 for extra in counted)) / total - centre**2) / total
    half = math.sqrt(Z95**2 * variance + (student95(seeds - 1) ** 2 * between if between > ROUNDING else 0.0))
    return Interval(mean, max(within.low, centre - half), min(within.high, centre + half))


def student95(freedom: int) -> float:
    """Return what Student's t with ``freedom`` degrees of freedom exceeds, either way, in 5 %."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def _variances(around: np.ndarray, shares: np.ndarray, means: np.ndarray) -> tuple[float, float]:
    """Return the variance of the mean of the seeds' means: that of tasks with noise, and that between seeds without.

    ``around`` (S, T) is outcomes less their seed's mean, nan where none was judged; ``shares`` (S,) is one over its
    tasks; ``means`` is (S,).
    """
    seeds, tasks = around.shape
    weights = np.nansum(around * shares[:, None], axis=0) / seeds
    of_tasks = float(np.sum(weights**2)) * tasks / max(tasks - 1, 1)
    if seeds == 1:
        return of_tasks, 0.0
    rest = around - np.nanmean(around, axis=0)
    freedom = np.sum(~np.isnan(around)) - seeds - tasks + 1
    noise = float(np.nansum(rest**2) / freedom * shares.mean()) if freedom > 0 else 0.0
    return max(of_tasks, noise / seeds), max(0.0, float(means.var(ddof=1)) - noise) / seeds


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Return the two-sided p-value of McNemar's exact test on the same tasks in the same order.

    Under the null hypothesis each task that only one of the two solved is a fair coin
    (Edwards 1948, exact binomial form). Raises ``ValueError`` where the lengths differ.
    """
    _require_pairs(first, second)
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    return _fair_coins(min(only_first, only_second), only_first + only_second)


def paired_permutation(
    first: Sequence[float], second: Sequence[float], resamples: int = 10_000, seed: int = 0
) -> float:
    """Return the two-sided p-value of the sign-flip permutation test on the mean difference of pairs.

    Up to 16 differing pairs every flip is counted, and however many where all differ by as much, for which this is
    McNemar's test. Else ``resamples`` random flips are, with the observed one among them, so that p is never 0.
    """
    _require_pairs(first, second)
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    differences = differences[differences != 0]
    if differences.size == 0:
        return 1.0
    observed = abs(differences.sum()) - 1e-12
    if differences.size <= 16:
        bits = (np.arange(2**differences.size)[:, None] >> np.arange(differences.size)) & 1
        return float(np.mean(np.abs((1 - 2 * bits) @ differences) >= observed))
    sizes = np.abs(differences)
    if sizes.min() == sizes.max():
        above = int(np.sum(differences > 0))
        return _fair_coins(min(above, differences.size - above), differences.size)
    generator = np.random.default_rng(seed)
    extreme = sum(
        int(np.sum(np.abs(generator.choice((-1.0, 1.0), (rows, differences.size)) @ differences) >= observed))
        for rows in _chunks(resamples, 1000)
    )
    return (extreme + 1) / (resamples + 1)


def _fair_coins(fewer: int, coins: int) -> float:
    """Return how likely fair coins fall at least as unevenly as with ``fewer`` on one side."""
    tail = sum(math.comb(coins, k) for k in range(fewer + 1))
    return min(1.0, 2 * tail / 2**coins)


def p_text(p: float) -> str:
    """Return a p-value as it is told: to three places, never as 0."""
    if math.isnan(p):
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _chunks(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]


def _require_pairs(first: Sequence[object], second: Sequence[object]) -> None:
    if len(first) != len(second):
        raise ValueError(f"a paired test needs the same tasks on both sides, found {len(first)} and {len(second)}")
