"""How far two judges say the same of the same episodes.

Owns ``Agreement``. Pure; random numbers come from a fixed seed. A number that does not exist is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.intervals import by_task, wilson_of_tasks, worth_of_tasks

_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two judges' yes and no on ``n`` episodes: confusion counts, the share that agrees, Cohen's kappa.

    ``low`` and ``high`` are ends of the 95 % interval of ``share`` over tasks; those of kappa come from a bootstrap of
    as many episodes as those of these tasks are worth. ``share`` is None over no episode, kappa where chance alone
    agrees (one answer was never given by either).
    """

    both: int
    neither: int
    only_first: int
    only_second: int
    share: float | None
    low: float
    high: float
    kappa: float | None
    kappa_low: float | None
    kappa_high: float | None

    @classmethod
    def of(cls, first: Sequence[bool], second: Sequence[bool], tasks: Sequence[str]) -> Agreement:
        """Compare two judges' answers on the same episodes, in one order; raise ``ValueError`` for unequal lengths.

        ``tasks`` names the task of each: episodes of one hang together.
        """
        pairs = list(zip(first, second, strict=True))
        counts = [pairs.count(pair) for pair in ((True, True), (False, False), (True, False), (False, True))]
        agreed = by_task((task, one == other) for task, (one, other) in zip(tasks, pairs, strict=True))
        interval = wilson_of_tasks(agreed)
        kappa, low, high = _kappa_with_interval(np.asarray(counts, dtype=np.float64), worth_of_tasks(agreed))
        share = None if math.isnan(interval.value) else interval.value
        both, neither, only_first, only_second = counts
        return cls(both, neither, only_first, only_second, share, interval.low, interval.high, kappa, low, high)

    @property
    def n(self) -> int:
        """Episodes that both judged."""
        return self.both + self.neither + self.only_first + self.only_second


def _kappa_with_interval(
    counts: npt.NDArray[np.float64], worth: float
) -> tuple[float | None, float | None, float | None]:
    """Return kappa of the counts (both, neither, only first, only second) and the ends of its interval.

    Half an episode is added to each count that is drawn from, so that an answer that few episodes lack is not ruled
    out. The interval is (-1, 1) where a quarter of the draws has no kappa.
    """
    total = counts.sum()
    value = _kappas(counts[None])[0] if total else math.nan
    if math.isnan(value):
        return None, None, None
    shares = (counts * worth / total + 0.5) / (worth + 2)
    drawn = _kappas(np.random.default_rng(0).multinomial(max(round(worth), 1), shares, size=_RESAMPLES).astype(float))
    if np.isnan(drawn).mean() > 0.25:
        return float(value), -1.0, 1.0
    low, high = np.nanpercentile(drawn, [2.5, 97.5])
    return float(value), min(float(low), float(value)), max(float(high), float(value))


def _kappas(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Cohen's kappa (R,) of each row of counts (R, 4), nan where it is not defined."""
    both, neither, first, second = counts.T / counts.sum(axis=1)
    expected = (both + first) * (both + second) + (neither + second) * (neither + first)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappas = (both + neither - expected) / (1 - expected)
    return np.asarray(np.where(np.isclose(expected, 1.0), np.nan, kappas))
