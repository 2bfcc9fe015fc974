"""Is a new policy worse than an old one on long tasks? A paired answer, or that there are too few tasks to tell.

Owns the gate's arithmetic. Pure functions of numbers. Invariants: only tasks that both have been judged on count; what
cannot be told is never a pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist

import numpy as np

from analysis.intervals import Interval, paired_permutation

MOST_TASKS = 100_000
"""Above so many, what would be needed is not computed."""


POWER = 0.8
"""In how many cases of 1 as many tasks as are said to be needed are enough."""


class GateVerdict(StrEnum):
    """What the gate says."""

    PASSED = "passed"
    REGRESSION = "regression"
    TOO_FEW = "too few tasks"


@dataclass(frozen=True, slots=True)
class GateResult:
    """The comparison on ``tasks`` tasks: success of both, the difference (new minus old), and the verdict.

    ``difference`` has its one-sided limits; ``p`` is two-sided, of the paired permutation test. ``needed`` is about how
    many tasks tell in 8 of 10 cases that two equal policies differ by less than the margin; None where that is not to
    be had.
    """

    tasks: int
    old: float
    new: float
    difference: Interval
    p: float
    verdict: GateVerdict
    needed: int | None
    sentence: str


def gate(old: Mapping[str, float], new: Mapping[str, float], *, margin: float, level: float) -> GateResult:
    """Return whether ``new`` is no worse than ``old`` by ``margin`` or more; both are success in [0, 1] by task.

    Passed when the lower limit of the difference at confidence ``level`` is above -``margin`` (0: new must be better);
    a regression when the upper limit is below 0; too few tasks otherwise.
    """
    shared = sorted(old.keys() & new.keys())
    before, after = [old[task] for task in shared], [new[task] for task in shared]
    gaps = [b - a for a, b in zip(before, after, strict=True)]
    difference = paired_difference(gaps, level)
    if shared and difference.low > -margin:
        verdict = GateVerdict.PASSED
    elif shared and difference.high < 0:
        verdict = GateVerdict.REGRESSION
    else:
        verdict = GateVerdict.TOO_FEW
    needed = tasks_needed(gaps, margin, level)
    p = paired_permutation(after, before) if shared else 1.0
    means = [float(np.mean(values)) if shared else math.nan for values in (before, after)]
    sentence = _sentence(verdict, len(shared), means, difference, margin, needed)
    return GateResult(len(shared), means[0], means[1], difference, p, verdict, needed, sentence)


def paired_difference(gaps: Sequence[float], level: float) -> Interval:
    """Return the mean of paired differences in [-1, 1] with its one-sided limits at ``level``.

    One more pair of each kind, +1 and -1, is counted in for the limits: for single passes this is the interval of
    Bonett and Price (2012), which keeps its level with few pairs, and says little of pairs that never differ.
    """
    counted = np.array([*gaps, 1.0, -1.0])
    half = NormalDist().inv_cdf(level) * float(counted.std()) / math.sqrt(len(counted))
    centre = float(counted.mean())
    mean = float(np.mean(gaps)) if gaps else math.nan
    return Interval(mean, max(-1.0, centre - half), min(1.0, centre + half))


def tasks_needed(gaps: Sequence[float], margin: float, level: float) -> int | None:
    """Return how many tasks would do, in 8 of 10 cases, for two equal policies that differ on tasks as much as these.

    None where no number up to ``MOST_TASKS`` does (margin 0).
    """
    if margin <= 0:
        return None
    square = float(np.mean(np.square(gaps))) if gaps else 0.0
    z, power = NormalDist().inv_cdf(level), NormalDist().inv_cdf(POWER)
    # Equal policies: the limit lies z * sqrt((square * n + 2) / (n + 2) / (n + 2)) below a mean that is about 0 with
    # the error sqrt(square / n), and must be above -margin.
    for n in range(1, MOST_TASKS):
        if z * math.sqrt(square * n + 2) / (n + 2) + power * math.sqrt(square / n) < margin:
            return n
    return None


def _sentence(
    verdict: GateVerdict,
    tasks: int,
    means: Sequence[float],
    difference: Interval,
    margin: float,
    needed: int | None,
) -> str:
    if not tasks:
        return f"no such task was judged on both sides; about {needed or 'many'} are needed"
    found = (
        f"{100 * means[1]:.1f} % against {100 * means[0]:.1f} % on {tasks} tasks, a difference of "
        f"{100 * difference.value:+.1f} points [{100 * difference.low:+.1f}, {100 * difference.high:+.1f}]"
    )
    if verdict is GateVerdict.PASSED:
        return f"{found}: not {100 * margin:g} points worse" if margin else f"{found}: better"
    if verdict is GateVerdict.REGRESSION:
        return f"{found}: worse"
    if needed is None:
        return f"{found}: whether it is better cannot be told from so few"
    if needed > tasks:
        return f"{found}: too few to tell; about {needed} are needed"
    return f"{found}: neither worse nor within {100 * margin:g} points for certain; more tasks are needed than {tasks}"
