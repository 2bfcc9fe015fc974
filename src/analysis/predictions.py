"""What a study predicts of its arms, and whether the outcome bears it out.

Owns ``Prediction`` and its verdict. Invariant: a prediction is a statement about one difference between two arms, fixed
before the runs; the verdict follows from the difference's 95 % interval alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from analysis.intervals import Interval


class Bearing(StrEnum):
    """What an outcome says of a prediction."""

    HELD = "held"
    FAILED = "failed"
    OPEN = "undecided"


class Measure(StrEnum):
    """What of an episode is compared: its outcome, or the share of its milestones that it reached."""

    SUCCESS = "success"
    MILESTONES = "milestones reached"


@dataclass(frozen=True, slots=True)
class Prediction:
    """A difference of a measure, ``arm`` less ``over``, on a split or on a group of its tasks.

    Either it is above ``more_than``, or it lies ``within`` so much of 0; both are shares in [-1, 1]. ``group``
    is empty for all tasks of the split.
    """

    says: str
    arm: str
    over: str
    split: str
    group: str = ""
    more_than: float | None = None
    within: float | None = None
    measure: Measure = Measure.SUCCESS

    def __post_init__(self) -> None:
        """Refuse what says nothing, or two things."""
        if (self.more_than is None) == (self.within is None):
            raise ValueError(f"prediction {self.says!r}: expected either more_than or within")
        if self.within is not None and not 0 < self.within <= 1:
            raise ValueError(f"prediction {self.says!r}: within: expected a share in (0, 1], found {self.within}")
        if self.more_than is not None and not -1 <= self.more_than < 1:
            raise ValueError(
                f"prediction {self.says!r}: more_than: expected a share in [-1, 1), found {self.more_than}"
            )

    def borne_out(self, difference: Interval) -> Bearing:
        """Return whether the difference's interval bears this out, speaks against it, or leaves it open."""
        if self.within is not None:
            if -self.within <= difference.low and difference.high <= self.within:
                return Bearing.HELD
            return Bearing.FAILED if difference.low > self.within or difference.high < -self.within else Bearing.OPEN
        assert self.more_than is not None
        if difference.low > self.more_than:
            return Bearing.HELD
        return Bearing.FAILED if difference.high <= self.more_than else Bearing.OPEN


def smallest_shown(difference: Interval) -> float:
    """Return the difference that a study with this interval shows in 8 of 10 repetitions.

    1.96 + 0.84 standard errors, the error read from the width of the 95 % interval.
    """
    return 2.8 * (difference.high - difference.low) / (2 * 1.96)
