"""Statistics of numbers per sample, and of the order that they give.

Pure functions on numpy arrays. A statistic that has no value (an AUC with one class) is None, never 0. scipy is
imported where it is used: it takes half a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from learner.arrays import Array


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean, standard deviation and quantiles of per-sample numbers."""

    count: int
    mean: float
    std: float
    p05: float
    p50: float
    p95: float


def summarise(values: Array) -> Summary | None:
    """Return the summary of ``values`` (N,), or None for none."""
    if len(values) == 0:
        return None
    sample = np.asarray(values, dtype=np.float64)
    p05, p50, p95 = np.quantile(sample, [0.05, 0.5, 0.95])
    return Summary(len(sample), float(sample.mean()), float(sample.std()), float(p05), float(p50), float(p95))


def auc(scores: Array, labels: Array) -> float | None:
    """Return the area under the ROC curve of ``scores`` (N,) for binary ``labels`` (N,); ties count half."""
    positive = np.asarray(labels) > 0.5
    wins, losses = int(positive.sum()), int((~positive).sum())
    if wins == 0 or losses == 0:
        return None
    return float((_ranks(scores)[positive].sum() - wins * (wins + 1) / 2) / (wins * losses))


def spearman(a: Array, b: Array) -> float | None:
    """Return Spearman's rank correlation of two (N,) arrays, or None where one of them is constant."""
    return pearson(_ranks(a), _ranks(b))


def kendall(a: Array, b: Array) -> float | None:
    """Return Kendall's tau-b of two (N,) arrays, or None where one of them is constant."""
    if not len(a) or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    from scipy import stats

    return float(stats.kendalltau(a, b).statistic)


def pearson(a: Array, b: Array) -> float | None:
    """Return the linear correlation of two (N,) arrays, or None where one of them is constant."""
    if not len(a) or np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    x, y = (np.asarray(v, dtype=np.float64) - np.mean(v, dtype=np.float64) for v in (a, b))
    scale = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float((x * y).sum() / scale) if scale > 0 else None


def mean_or_none(values: list[float | None]) -> float | None:
    """Return the mean of the values that exist, or None."""
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else None


def _ranks(values: Array) -> Array:
    """Return (N,) ranks from 1; ties share their mean rank."""
    from scipy import stats

    return np.asarray(stats.rankdata(values), dtype=np.float64)
