"""A prediction is borne out, refuted or left open by the interval of one difference."""

from __future__ import annotations

import pytest

from analysis.intervals import Interval
from analysis.predictions import Bearing, Prediction, smallest_shown

HELD, FAILED, OPEN = Bearing.HELD, Bearing.FAILED, Bearing.OPEN


@pytest.mark.parametrize(
    ("found", "more_than", "bearing"),
    [
        ((0.05, 0.01, 0.09), 0.0, HELD),
        ((0.05, -0.01, 0.09), 0.0, OPEN),
        ((-0.05, -0.09, 0.0), 0.0, FAILED),
        ((0.05, 0.01, 0.09), 0.02, OPEN),
        ((0.05, 0.01, 0.09), 0.1, FAILED),
        ((-0.02, -0.03, -0.01), -0.05, HELD),
    ],
)
def test_above(found: tuple[float, float, float], more_than: float, bearing: Bearing) -> None:
    said = Prediction("a is better", "a", "b", "test", more_than=more_than)
    assert said.borne_out(Interval(*found)) is bearing


@pytest.mark.parametrize(
    ("found", "bearing"),
    [
        ((0.0, -0.03, 0.03), HELD),
        ((0.0, -0.05, 0.03), OPEN),
        ((0.06, 0.05, 0.09), FAILED),
        ((-0.06, -0.09, -0.05), FAILED),
    ],
)
def test_within(found: tuple[float, float, float], bearing: Bearing) -> None:
    assert Prediction("the same", "a", "b", "test", within=0.04).borne_out(Interval(*found)) is bearing


@pytest.mark.parametrize("wrong", [{}, {"within": 0.1, "more_than": 0.0}, {"within": 0.0}, {"more_than": 1.0}])
def test_what_says_nothing_or_two_things_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="prediction 'x'"):
        Prediction("x", "a", "b", "test", **wrong)


def test_what_a_study_would_show() -> None:
    # an interval of 2 * 1.96 errors of 0.01 each: (1.96 + 0.84) * 0.01
    assert smallest_shown(Interval(0.0, -0.0196, 0.0196)) == pytest.approx(0.028)
