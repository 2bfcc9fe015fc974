"""How well numbers tell successes from failures, and how honest they are as probabilities.

Owns the area under the ROC curve with its interval, calibration (temperature and bias, Platt 1999, and a threshold),
reliability bins, and ``OutcomeReport``. Pure; random numbers come from fixed seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.agreement import Agreement
from analysis.intervals import Z95, Interval

Numbers = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
_RESAMPLES = 2000
_BINS = 10


@dataclass(frozen=True, slots=True)
class Calibration:
    """From log-odds to probabilities, and from which one on it counts as a success."""

    temperature: float
    bias: float
    threshold: float

    def probabilities(self, log_odds: Numbers) -> Numbers:
        """Return probabilities of success (N,)."""
        return np.asarray(1.0 / (1.0 + np.exp(-(log_odds - self.bias) / self.temperature)))


@dataclass(frozen=True, slots=True)
class Bin:
    """Episodes of which about the same was said: the mean ``said``, and the share that ``happened``."""

    n: int
    said: float
    happened: float


@dataclass(frozen=True, slots=True)
class OutcomeReport:
    """An outcome model against the evaluators on ``n`` held-out episodes, of which ``successes`` succeeded.

    ``auc`` has a 95 % interval by a bootstrap over templates. ``accuracy`` and ``agreement`` (evaluators first) are at
    the threshold; ``ece`` is the expected calibration error over ``bins``. ``trained`` and ``calibrated`` count the
    episodes of the other parts.
    """

    n: int
    successes: int
    templates: int
    auc: Interval
    accuracy: float
    threshold: float
    ece: float
    bins: tuple[Bin, ...]
    agreement: Agreement
    by_site: dict[str, Agreement]
    trained: int = 0
    calibrated: int = 0


def report_on(
    probabilities: Numbers, solved: Flags, threshold: float, *, sites: Sequence[str], templates: Sequence[str]
) -> OutcomeReport:
    """Return the report on held-out episodes; all arguments have one entry for each."""
    said = probabilities >= threshold
    bins = reliability(probabilities, solved)
    where = np.asarray(sites)
    return OutcomeReport(
        n=len(solved),
        successes=int(solved.sum()),
        templates=len(set(templates)),
        auc=auc_interval(probabilities, solved, templates),
        accuracy=float((said == solved).mean()),
        threshold=threshold,
        ece=sum(b.n * abs(b.said - b.happened) for b in bins) / len(solved),
        bins=bins,
        agreement=Agreement.of(solved.tolist(), said.tolist(), templates),
        by_site={
            site: Agreement.of(solved[at].tolist(), said[at].tolist(), [templates[int(i)] for i in np.flatnonzero(at)])
            for site in sorted(set(sites))
            for at in [where == site]
        },
    )


def auc(scores: Numbers, solved: Flags) -> float:
    """Return the probability that a success scores above a failure, ties half; nan where there are not both."""
    wins, losses = int(solved.sum()), int((~solved).sum())
    if not wins or not losses:
        return float("nan")
    from scipy import stats

    return float((stats.rankdata(scores)[solved].sum() - wins * (wins + 1) / 2) / (wins * losses))


def auc_interval(scores: Numbers, solved: Flags, groups: Sequence[str]) -> Interval:
    """Return the area under the curve with its 95 % interval; ``groups`` (templates) hang together.

    It reaches as far as the wider of two: a percentile bootstrap over groups, and Newcombe's interval for single
    episodes (2006, method 5), which keeps a width where all draws say the same. It is (0, 1) where there is one group
    or only one kind of outcome: nothing is known then.
    """
    found = over_groups(lambda chosen: auc(scores[chosen], solved[chosen]), groups)
    wins = int(solved.sum())
    low, high = _newcombe(found.value, wins, len(solved) - wins)
    return Interval(found.value, min(found.low, low), max(found.high, high))


def _newcombe(area: float, wins: int, losses: int) -> tuple[float, float]:
    """Return the ends of the areas that are 1.96 of their standard errors from ``area`` (Hanley and McNeil 1982)."""
    if math.isnan(area):
        return 0.0, 1.0
    candidates = np.linspace(0.0, 1.0, 10_001)
    mean = (wins + losses) / 2 - 1
    factor = 1 + mean * (1 - candidates) / (2 - candidates) + mean * candidates / (1 + candidates)
    inside = (candidates - area) ** 2 <= Z95**2 * candidates * (1 - candidates) * factor / (wins * losses)
    near = candidates[inside | (np.abs(candidates - area) <= 1e-4)]
    return float(near.min()), float(near.max())


def over_groups(statistic: Callable[[npt.NDArray[np.int64]], float], groups: Sequence[str]) -> Interval:
    """Return ``statistic`` of all N indices with a 95 % percentile bootstrap over ``groups`` (N), which hang together.

    A draw of which the statistic is nan does not count. The interval is (0, 1) where there is one group, or the
    statistic of all or of a quarter of the draws is nan: nothing is known then.
    """
    names = np.asarray(groups)
    value = statistic(np.arange(len(names)))
    generator = np.random.default_rng(0)
    members = [np.flatnonzero(names == name) for name in sorted(set(groups))]
    if len(members) < 2 or math.isnan(value):
        return Interval(value, 0.0, 1.0)
    drawn = [
        statistic(np.concatenate([members[i] for i in generator.integers(len(members), size=len(members))]))
        for _ in range(_RESAMPLES)
    ]
    if np.isnan(drawn).mean() > 0.25:
        return Interval(value, 0.0, 1.0)
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return Interval(value, float(low), float(high))


def calibrate(log_odds: Numbers, solved: Flags) -> Calibration:
    """Return the temperature and bias of largest likelihood, and the threshold of largest accuracy under them.

    The targets are Platt's, a little inside 0 and 1, so that a perfect separation has a finite temperature. Of several
    thresholds that are equally good the middle one counts.
    """
    wins, losses = int(solved.sum()), int((~solved).sum())
    target = np.where(solved, (wins + 1) / (wins + 2), 1 / (losses + 2))
    scale = max(float(np.std(log_odds)), 1e-6)
    slope, offset = _logistic(log_odds / scale, target)
    slope = max(slope, 1e-3) / scale  # an outcome model that says the opposite of what is so is not turned round
    found = Calibration(1 / slope, -offset / slope, 0.5)
    return Calibration(found.temperature, found.bias, _threshold(found.probabilities(log_odds), solved))


def reliability(probabilities: Numbers, solved: Flags) -> tuple[Bin, ...]:
    """Return the bins of equal width in [0, 1] that hold episodes."""
    index = np.minimum((probabilities * _BINS).astype(int), _BINS - 1)
    mine = [index == i for i in range(_BINS)]
    return tuple(Bin(int(m.sum()), float(probabilities[m].mean()), float(solved[m].mean())) for m in mine if m.any())


def _logistic(x: Numbers, target: Numbers) -> tuple[float, float]:
    """Return slope and offset of a logistic regression of ``target`` in (0, 1) on ``x``, by damped Newton steps."""
    design, weights = np.stack([x, np.ones_like(x)], axis=1), np.zeros(2)
    for _ in range(100):
        p = 1.0 / (1.0 + np.exp(-(design @ weights)))
        gradient = design.T @ (p - target)
        hessian = (design * (p * (1 - p))[:, None]).T @ design + 1e-6 * np.eye(2)
        step = np.linalg.solve(hessian, gradient)
        weights -= step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-9:
            break
    return float(weights[0]), float(weights[1])


def _threshold(probabilities: Numbers, solved: Flags) -> float:
    """Return the middle of the thresholds that agree with most episodes; at the ends of them all, or none, succeed."""
    values = np.unique(probabilities)
    cuts = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2, (values[-1:] + 1) / 2])
    right = np.asarray([((probabilities >= cut) == solved).sum() for cut in cuts])
    best = cuts[right == right.max()]
    return float(best[len(best) // 2])
