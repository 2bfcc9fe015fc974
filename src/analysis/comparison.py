"""Two arms of an experiment against each other: levels over seeds, and paired differences.

Owns the statistics of studies and of benchmarks that compare runs. Pure functions of outcomes by seed, split and task.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from analysis.intervals import Interval, mcnemar, mean_of_seeds, paired_permutation

Outcomes = Mapping[str, float]
"""Outcome of each judged task, in [0, 1]."""

Seeds = Mapping[int, Mapping[str, Outcomes]]
"""Outcomes by seed and split."""


def level(seeds: Seeds, split: str) -> dict[str, Any]:
    """Return the mean of the seeds with its 95 % interval, and each seed's.

    Seeds without a judged task of the split are left out; without any nothing is known (nan in [0, 1]).
    """
    judged = {seed: of[split] for seed, of in sorted(seeds.items()) if of.get(split)}
    bounds = Interval(math.nan, 0.0, 1.0)
    return {
        "seeds": list(judged),
        "by_seed": [float(np.mean(list(run.values()))) for run in judged.values()],
        "mean": asdict(mean_of_seeds(list(judged.values()), (0.0, 0.0, 1.0, 1.0), bounds) if judged else bounds),
    }


def difference(first: Seeds, second: Seeds, split: str) -> dict[str, Any]:
    """Compare two arms on the seeds and tasks that both have; where there are none, nothing is known (nan).

    The permutation test flips whole tasks, because seeds that share tasks, and perhaps the start, are not independent;
    it is about these runs, not about others. McNemar's test is given for each seed.
    """
    shared = [
        {task: (a[task], b[task]) for task in a if task in b}
        for seed in sorted(set(first) & set(second))
        for a, b in [(first[seed].get(split, {}), second[seed].get(split, {}))]
    ]
    pairs = [pair for pair in shared if pair]
    gaps = [{task: a - b for task, (a, b) in pair.items()} for pair in pairs]
    tasks = dict.fromkeys(task for of_seed in gaps for task in of_seed)
    means = [float(np.mean([of_seed[task] for of_seed in gaps if task in of_seed])) for task in tasks]
    found = (
        mean_of_seeds(gaps, (1.0, -1.0), Interval(0.0, -1.0, 1.0)) if gaps else Interval(math.nan, math.nan, math.nan)
    )
    return {
        "mean": asdict(found),
        "by_seed": [float(np.mean(list(of_seed.values()))) for of_seed in gaps],
        "p_permutation": paired_permutation(means, [0.0] * len(means)),
        "p_mcnemar": [mcnemar(*zip(*[(a == 1.0, b == 1.0) for a, b in pair.values()], strict=True)) for pair in pairs],
    }
