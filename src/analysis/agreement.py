"""How far two judges say the same of the same episodes.

Owns ``Agreement``. Pure; random numbers come from a fixed seed. A number that does not exist is None, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.intervals import wilson

_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two judges' yes and no on ``n`` episodes: confusion counts, the share that agrees, Cohen's kappa.

    ``low`` and ``high`` are ends of Wilson's 95 % interval of ``share``; those of kappa come from a bootstrap over
    episodes. ``share`` is None over no episode, kappa where chance alone agrees (one answer was never given by either).
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
    def of(cls, first: Sequence[bool], second: Sequence[bool]) -> Agreement:
        """Compare two judges' answers on the same episodes, in one order; raise ``ValueError`` for unequal lengths."""
        pairs = list(zip(first, second, strict=True))
        counts = [pairs.count(pair) for pair in ((True, True), (False, False), (True, False), (False, True))]
        interval = wilson(counts[0] + counts[1], len(pairs))
        kappa, low, high = _kappa_with_interval(np.asarray(counts, dtype=np.float64))
        share = None if math.isnan(interval.value) else interval.value
        both, neither, only_first, only_second = counts
        return cls(both, neither, only_first, only_second, share, interval.low, interval.high, kappa, low, high)

    @property
    def n(self) -> int:
        """Episodes that both judged."""
        return self.both + self.neither + self.only_first + self.only_second


def _kappa_with_interval(counts: npt.NDArray[np.float64]) -> tuple[float | None, float | None, float | None]:
    """Return kappa of the counts (both, neither, only first, only second) and the ends of its interval."""
    total = int(counts.sum())
    value = _kappas(counts[None])[0] if total else math.nan
    if math.isnan(value):
        return None, None, None
    drawn = np.random.default_rng(0).multinomial(total, counts / total, size=_RESAMPLES).astype(np.float64)
    low, high = np.nanpercentile(_kappas(drawn), [2.5, 97.5])
    return float(value), float(low), float(high)


def _kappas(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Cohen's kappa (R,) of each row of counts (R, 4), nan where it is not defined."""
    both, neither, first, second = counts.T / counts.sum(axis=1)
    expected = (both + first) * (both + second) + (neither + second) * (neither + first)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappas = (both + neither - expected) / (1 - expected)
    return np.asarray(np.where(np.isclose(expected, 1.0), np.nan, kappas))
