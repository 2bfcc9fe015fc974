"""Two arms of an experiment against each other: levels over seeds, and paired differences.

Owns the statistics of studies and of benchmarks that compare runs. Pure functions of outcomes by seed, split and task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from analysis.intervals import Interval, bootstrap_seeds, mcnemar, paired_permutation, wilson

Outcomes = Mapping[str, float]
"""Outcome of each judged task, in [0, 1]."""

Seeds = Mapping[int, Mapping[str, Outcomes]]
"""Outcomes by seed and split."""


def level(seeds: Seeds, split: str) -> dict[str, Any]:
    """Return the mean of the seeds with its bootstrap interval, and the pooled rate with Wilson's.

    Where every task failed, or every one was solved, a bootstrap has no width; the mean has Wilson's interval then.
    """
    outcomes = [list(seeds[seed][split].values()) for seed in sorted(seeds)]
    values = [value for run in outcomes for value in run]
    pooled = wilson(values.count(1.0), len(values))
    alike = set(values) in ({0.0}, {1.0})
    return {
        "seeds": sorted(seeds),
        "by_seed": [float(np.mean(run)) for run in outcomes],
        "mean": asdict(pooled if alike else bootstrap_seeds(outcomes)),
        "pooled": asdict(pooled),
    }


def difference(first: Seeds, second: Seeds, split: str) -> dict[str, Any]:
    """Compare two arms on the seeds and tasks that both have.

    The permutation test flips whole tasks (the mean of their seeds), because seeds that share tasks, and
    perhaps the start, are not independent; McNemar's test is given for each seed.
    """
    pairs = [
        {task: (a[task], b[task]) for task in a if task in b}
        for seed in sorted(set(first) & set(second))
        for a, b in [(first[seed][split], second[seed][split])]
    ]
    gaps: dict[str, list[float]] = {}
    for pair in pairs:
        for task, (a, b) in pair.items():
            gaps.setdefault(task, []).append(a - b)
    means = [float(np.mean(of_task)) for of_task in gaps.values()]
    by_seed = [[a - b for a, b in pair.values()] for pair in pairs]
    return {
        "mean": asdict(bootstrap_seeds(by_seed) if pairs else Interval(float("nan"), float("nan"), float("nan"))),
        "by_seed": [float(np.mean(of_seed)) for of_seed in by_seed],
        "p_permutation": paired_permutation(means, [0.0] * len(means)),
        "p_mcnemar": [mcnemar(*zip(*[(a == 1.0, b == 1.0) for a, b in pair.values()], strict=True)) for pair in pairs],
    }
