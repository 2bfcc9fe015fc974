"""Whether milestones tell success from failure: the statistics that a source of milestones is judged by.

Owns the measures of MiRA's section 5.1 (AUROC of the share of milestones completed, equivalence of completing all with
success, Kendall's tau, success by number completed) and the rules by which a source is accepted. Invariant: an episode
without a verdict or without milestones does not enter. Pure functions of numbers; the bootstrap has a fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from analysis.discrimination import auc_interval
from analysis.intervals import Interval
from analysis.metrics import Rate

LEAST_AUROC = 0.70
"""Fixed: what the lower end of the AUROC's interval must reach. Half of the way from chance (0.5) to MiRA's 0.84 is
0.67; milestones of another task of the same template, which share its first pages, reach 0.59 at the upper end."""

LARGEST_P = 0.001
"""Fixed: the paper's own bound for Kendall's tau; what is not significant at it may be chance."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What became of one judged episode: milestones ``completed`` at its end of ``total``, and whether it succeeded.

    Episodes of one ``group`` (a template) share their milestones, so they are resampled together.
    """

    completed: int
    total: int
    success: bool
    group: str = ""

    @property
    def share(self) -> Fraction:
        """The progress score s_i in [0, 1]."""
        return Fraction(self.completed, self.total)


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Completing all milestones as a prediction of success; nan where it was never made, or nothing succeeded.

    ``precision_low`` is the lower end of the precision's 95 % interval over groups.
    """

    precision: float
    recall: float
    f1: float
    predicted: int
    precision_low: float


@dataclass(frozen=True, slots=True)
class Validity:
    """The statistics of one source of milestones over ``episodes``, of which ``successes`` succeeded.

    ``auroc`` has a 95 % interval (bootstrap over templates); ``tau`` is Kendall's tau-b of share and outcome with its
    two-sided ``p``; ``by_completed`` is success by the share of milestones completed, such as ``3/4``. ``rejected``
    lists the rules that the source breaks; none for one that is accepted.
    """

    episodes: int
    successes: int
    auroc: Interval
    equivalence: Equivalence
    tau: float
    p: float
    by_completed: dict[str, Rate]
    rejected: tuple[str, ...]


def validity(completions: Sequence[Completion]) -> Validity:
    """Return the statistics of ``completions``; those that are not defined are nan, and then reject the source."""
    by_share: dict[Fraction, list[tuple[str, bool]]] = {one: [] for one in sorted({one.share for one in completions})}
    for one in completions:
        by_share[one.share].append((one.group, one.success))
    totals = {one.total for one in completions}
    shares, solved = [float(one.share) for one in completions], [one.success for one in completions]
    tau, p = kendall_tau(shares, [float(one) for one in solved])
    found = Validity(
        len(completions),
        sum(solved),
        auc_interval(np.asarray(shares), np.asarray(solved, dtype=np.bool_), [one.group for one in completions]),
        equivalence(completions),
        tau,
        p,
        {_level(share, totals): Rate.of_tasks(ended) for share, ended in by_share.items()},
        (),
    )
    return replace(found, rejected=tuple(_broken_rules(found)))


def equivalence(completions: Sequence[Completion]) -> Equivalence:
    """Return how well "all milestones are completed" says "the task was solved"."""
    predicted = [one for one in completions if one.completed == one.total]
    right, solved = sum(one.success for one in predicted), sum(one.success for one in completions)
    precision = right / len(predicted) if predicted else math.nan
    recall = right / solved if solved else math.nan
    f1 = 2 * right / (len(predicted) + solved) if predicted and solved else math.nan
    low = Rate.of_tasks((one.group, one.success) for one in predicted).low
    return Equivalence(precision, recall, f1, len(predicted), low)


def kendall_tau(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Return Kendall's tau-b and its two-sided p-value by the normal approximation.

    Both are nan where one side has a single value; p is nan below three pairs.
    """
    from scipy import stats

    if len(set(x)) < 2 or len(set(y)) < 2:
        return math.nan, math.nan
    few = len(x) < 3
    found = stats.kendalltau(x, y, method="exact" if few else "asymptotic")
    return float(found.statistic), math.nan if few else float(found.pvalue)


def _level(share: Fraction, totals: set[int]) -> str:
    """Return a share as a number of milestones where all tasks have as many, in lowest terms where they differ."""
    total = next(iter(totals)) if len(totals) == 1 else share.denominator
    return f"{int(share * total)}/{total}"


def _broken_rules(found: Validity) -> list[str]:
    """Return what speaks against the milestones; a number that is not defined does."""
    broken = []
    if not found.auroc.low >= LEAST_AUROC:
        area = f"AUROC {found.auroc.value:.2f}, from {found.auroc.low:.2f}"
        broken.append(f"{area}: expected its lower end at {LEAST_AUROC:g} or more")
    if not (found.tau > 0 and found.p < LARGEST_P):
        broken.append(f"Kendall's tau {found.tau:.2f} (p {found.p:.2g}): expected above 0 with p below {LARGEST_P}")
    base = found.successes / found.episodes if found.episodes else math.nan
    if not found.equivalence.predicted:
        broken.append("no episode completed all of its milestones: expected some, with more successes among them")
    elif not found.equivalence.precision_low > base:
        broken.append(
            f"success where all are completed {found.equivalence.precision:.2f} (n {found.equivalence.predicted}): "
            f"expected clearly above success overall, {base:.2f}"
        )
    return broken
