"""Intervals and paired tests for success rates.

Owns the statistics every number we report goes through. Pure functions of numbers; random ones take
a seed. numpy and the standard library suffice, so nothing heavier is imported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Z95 = 1.959963984540054


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


def wilson_of_tasks(by_task: Sequence[Sequence[bool]], z: float = Z95) -> Interval:
    """Return the success rate of tasks that were played several times each, with Wilson's interval for so many tasks.

    Passes of one task are alike, so that the episodes count as fewer: as many independent ones as would give the mean
    the variance that it has over tasks (Korn and Graubard 1998). They are never more than there are episodes, and as
    many as tasks where all tasks ended alike. With one pass each it is ``wilson``.
    """
    played = [np.asarray(task, dtype=np.float64) for task in by_task if len(task)]
    episodes = sum(len(task) for task in played)
    solved = int(sum(task.sum() for task in played))
    if len(played) in (0, episodes):
        return wilson(solved, episodes, z)
    rate, tasks = solved / episodes, len(played)
    spread = sum(float((task - rate).sum()) ** 2 for task in played) / episodes**2 * tasks / max(tasks - 1, 1)
    counted = min(rate * (1 - rate) / spread, float(episodes)) if spread else float(tasks)
    return _wilson(rate, counted if tasks > 1 else 1.0, z)


def _wilson(rate: float, n: float, z: float) -> Interval:
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = 0.0 if rate == 0 else max(0.0, centre - half)
    high = 1.0 if rate == 1 else min(1.0, centre + half)
    return Interval(rate, low, high)


def bootstrap_seeds(
    outcomes: Sequence[Sequence[float]], level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Return the mean over seeds with a two-level percentile bootstrap: seeds first, then tasks within each.

    ``outcomes[s]`` holds seed s's outcomes over its tasks (lengths may differ). The value is the mean
    of the seeds' means, so that each seed weighs the same. Raises ``ValueError`` where a seed is empty.
    """
    runs = [np.asarray(run, dtype=np.float64) for run in outcomes]
    if not runs or any(run.size == 0 for run in runs):
        raise ValueError(f"expected at least one outcome for every seed, found counts {[run.size for run in runs]}")
    generator = np.random.default_rng(seed)
    picks = generator.integers(len(runs), size=(len(runs), resamples))
    means = np.empty(picks.shape)
    for slot, index in np.ndindex(len(runs), len(runs)):
        columns = np.flatnonzero(picks[slot] == index)
        means[slot, columns] = _resampled_means(runs[index], columns.size, generator)
    totals = means.mean(axis=0)
    low, high = np.quantile(totals, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(np.mean([run.mean() for run in runs])), float(low), float(high))


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> float:
    """Return the two-sided p-value of McNemar's exact test on the same tasks in the same order.

    Under the null hypothesis each task that only one of the two solved is a fair coin
    (Edwards 1948, exact binomial form). Raises ``ValueError`` where the lengths differ.
    """
    _require_pairs(first, second)
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    discordant = only_first + only_second
    if discordant == 0:
        return 1.0
    tail = sum(math.comb(discordant, k) for k in range(min(only_first, only_second) + 1))
    return min(1.0, 2 * tail / 2**discordant)


def paired_permutation(
    first: Sequence[float], second: Sequence[float], resamples: int = 10_000, seed: int = 0
) -> float:
    """Return the two-sided p-value of the sign-flip permutation test on the mean difference of pairs.

    Up to 16 differing pairs every flip is counted, beyond that ``resamples`` random ones (with the
    observed one among them, so that p is never 0). For averages over passes, where McNemar's does not apply.
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
    generator = np.random.default_rng(seed)
    extreme = sum(
        int(np.sum(np.abs(generator.choice((-1.0, 1.0), (rows, differences.size)) @ differences) >= observed))
        for rows in _chunks(resamples, 1000)
    )
    return (extreme + 1) / (resamples + 1)


def _resampled_means(run: np.ndarray, resamples: int, generator: np.random.Generator) -> np.ndarray:
    """Return ``resamples`` bootstrap means of one seed, (resamples,), a thousand at a time to bound memory."""
    parts = [generator.choice(run, size=(rows, run.size)).mean(axis=1) for rows in _chunks(resamples, 1000)]
    return np.concatenate([np.empty(0), *parts])


def _chunks(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]


def _require_pairs(first: Sequence[object], second: Sequence[object]) -> None:
    if len(first) != len(second):
        raise ValueError(f"a paired test needs the same tasks on both sides, found {len(first)} and {len(second)}")
