"""Two arms of an experiment against each other: levels over seeds, and paired differences.

Owns the statistics of studies and of benchmarks that compare runs. Pure functions of outcomes by seed, split and task.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from analysis.gate import paired_difference
from analysis.intervals import Interval, bootstrap_seeds, mcnemar, paired_permutation, wilson

Outcomes = Mapping[str, float]
"""Outcome of each judged task, in [0, 1]."""

Seeds = Mapping[int, Mapping[str, Outcomes]]
"""Outcomes by seed and split."""


def level(seeds: Seeds, split: str) -> dict[str, Any]:
    """Return the mean of the seeds with its bootstrap interval, and the pooled rate with Wilson's.

    Seeds without a judged task of the split are left out; without any nothing is known (nan in [0, 1]). Where every
    task failed, or every one was solved, a bootstrap has no width; the mean has Wilson's interval then.
    """
    judged = {seed: list(of[split].values()) for seed, of in sorted(seeds.items()) if of.get(split)}
    values = [value for run in judged.values() for value in run]
    pooled = wilson(values.count(1.0), len(values))
    alike = set(values) in (set(), {0.0}, {1.0})
    return {
        "seeds": list(judged),
        "by_seed": [float(np.mean(run)) for run in judged.values()],
        "mean": asdict(pooled if alike else bootstrap_seeds(list(judged.values()))),
        "pooled": asdict(pooled),
    }


def difference(first: Seeds, second: Seeds, split: str) -> dict[str, Any]:
    """Compare two arms on the seeds and tasks that both have; where there are none, nothing is known (nan).

    The interval is a bootstrap's over seeds and tasks, or that of ``paired_difference`` over all pairs as far as that
    is wider: where hardly a pair differs a bootstrap says more than they know.
    The permutation test flips whole tasks, because seeds that share tasks, and perhaps the start, are not independent;
    it is about these runs, not about others. McNemar's test is given for each seed.
    """
    shared = [
        {task: (a[task], b[task]) for task in a if task in b}
        for seed in sorted(set(first) & set(second))
        for a, b in [(first[seed].get(split, {}), second[seed].get(split, {}))]
    ]
    pairs = [pair for pair in shared if pair]
    gaps: dict[str, list[float]] = {}
    for pair in pairs:
        for task, (a, b) in pair.items():
            gaps.setdefault(task, []).append(a - b)
    means = [float(np.mean(of_task)) for of_task in gaps.values()]
    by_seed = [[a - b for a, b in pair.values()] for pair in pairs]
    return {
        "mean": asdict(_interval(by_seed) if pairs else Interval(math.nan, math.nan, math.nan)),
        "by_seed": [float(np.mean(of_seed)) for of_seed in by_seed],
        "p_permutation": paired_permutation(means, [0.0] * len(means)),
        "p_mcnemar": [mcnemar(*zip(*[(a == 1.0, b == 1.0) for a, b in pair.values()], strict=True)) for pair in pairs],
    }


def _interval(by_seed: Sequence[Sequence[float]]) -> Interval:
    """Return the mean of paired differences by seed and task, with the wider ends of both intervals, 95 % each."""
    resampled = bootstrap_seeds(by_seed)
    counted = paired_difference([gap for of_seed in by_seed for gap in of_seed], level=0.975)
    return Interval(resampled.value, min(resampled.low, counted.low), max(resampled.high, counted.high))
