"""Area under the curve, calibration and reliability, with numbers worked by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.discrimination import auc, auc_interval, calibrate, reliability, report_on


def test_auc_by_hand() -> None:
    solved = np.array([True, True, False, False])
    assert auc(np.array([0.9, 0.6, 0.5, 0.1]), solved) == 1.0
    assert auc(np.array([0.1, 0.5, 0.6, 0.9]), solved) == 0.0
    # Pairs: 0.9 beats both, 0.5 beats 0.1 and ties 0.5: 3.5 of 4.
    assert auc(np.array([0.9, 0.5, 0.5, 0.1]), solved) == 0.875
    assert np.isnan(auc(np.ones(2), np.array([True, True])))


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=40))
def test_auc_is_mann_and_whitneys(pairs: list[tuple[int, bool]]) -> None:
    scores, solved = np.array([float(a) for a, _ in pairs]), np.array([b for _, b in pairs])
    won, lost = scores[solved], scores[~solved]
    found = auc(scores, solved)
    if not len(won) or not len(lost):
        assert np.isnan(found)
    else:
        wins = sum((a > b) + (a == b) / 2 for a in won for b in lost)
        assert found == pytest.approx(wins / len(won) / len(lost))


def test_one_group_or_one_kind_of_outcome_tells_nothing() -> None:
    scores, both = np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False])
    assert auc_interval(scores, both, ["a"] * 4).high - auc_interval(scores, both, ["a"] * 4).low == 1.0
    none = auc_interval(scores, np.ones(4, dtype=np.bool_), ["a", "b", "c", "d"])
    assert (none.low, none.high) == (0.0, 1.0)


def test_the_interval_is_over_groups_and_the_same_each_time() -> None:
    generator = np.random.default_rng(1)
    solved = generator.random(400) < 0.5
    scores = solved + generator.normal(size=400)
    alone = auc_interval(scores, solved, [str(i) for i in range(400)])
    together = auc_interval(scores, solved, [str(i // 100) for i in range(400)])
    assert alone == auc_interval(scores, solved, [str(i) for i in range(400)])
    assert alone.low < alone.value < alone.high
    assert alone.value == together.value
    assert alone.high - alone.low == pytest.approx(0.09, abs=0.03)


@pytest.mark.parametrize(("wins", "losses"), [(2, 2), (5, 3), (20, 20), (200, 200)])
def test_a_perfect_area_has_a_width_that_becomes_less(wins: int, losses: int) -> None:
    solved = np.array([True] * wins + [False] * losses)
    found = auc_interval(solved.astype(float), solved, [str(i) for i in range(len(solved))])
    assert found.value == found.high == 1.0
    # Newcombe's lower end: where (1 - a)^2 is 1.96^2 times Hanley's and McNeil's variance at a.
    area, mean = found.low, (wins + losses) / 2 - 1
    variance = area * (1 - area) * (1 + mean * (1 - area) / (2 - area) + mean * area / (1 + area)) / (wins * losses)
    assert (1 - area) ** 2 == pytest.approx(1.96**2 * variance, rel=0.02)
    assert found.low < (0.5 if wins + losses == 4 else 1.0)


def test_equal_scores_of_a_few_are_no_certain_chance() -> None:
    solved = np.array([True, True, False, False])
    found = auc_interval(np.ones(4), solved, ["a", "b", "c", "d"])
    assert found.value == 0.5
    assert found.low < 0.2
    assert found.high > 0.8


@pytest.mark.parametrize("failures", [1, 3])
def test_draws_without_an_area_tell_nothing(failures: int) -> None:
    """One success: a third of the draws lack it, and with one failure beside it half of them do not have both."""
    solved = np.array([True] + [False] * failures)
    found = auc_interval(solved.astype(float), solved, [str(i) for i in range(len(solved))])
    assert (found.value, found.low, found.high) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(("solved", "said"), [([False] * 4, 0), ([True] * 4, 4), ([False] * 9 + [True], 0)])
def test_a_threshold_may_leave_out_everybody(solved: list[bool], said: int) -> None:
    """The last is the worst of ten: who believes nobody is right about nine, any other cut about fewer."""
    log_odds = -np.arange(len(solved), dtype=float)
    found = calibrate(log_odds, np.array(solved))
    assert 0 <= found.threshold <= 1
    assert int((found.probabilities(log_odds) >= found.threshold).sum()) == said


def test_calibration_finds_the_scale_and_the_bias_that_were_put_in() -> None:
    generator = np.random.default_rng(0)
    true = generator.normal(size=20_000) * 2
    solved = generator.random(20_000) < 1 / (1 + np.exp(-true))
    found = calibrate(true * 3 + 5, solved)
    assert found.temperature == pytest.approx(3, rel=0.05)
    assert found.bias == pytest.approx(5, abs=0.2)
    bins = reliability(found.probabilities(true * 3 + 5), solved)
    assert max(abs(b.said - b.happened) for b in bins) < 0.05
    assert found.threshold == pytest.approx(0.5, abs=0.15)


def test_a_perfect_separation_has_a_finite_temperature_and_a_threshold_between() -> None:
    found = calibrate(np.array([-3.0, -2.0, 4.0, 5.0]), np.array([False, False, True, True]))
    said = found.probabilities(np.array([-2.0, 4.0]))
    assert said[0] < found.threshold < said[1]
    assert np.isfinite(found.temperature)
    assert found.temperature > 0


def test_a_model_that_says_the_opposite_is_not_turned_round() -> None:
    solved = np.array([True] * 20 + [False] * 20)
    found = calibrate(np.where(solved, -1.0, 1.0), solved)
    assert found.temperature > 0


def test_the_report_by_hand() -> None:
    probabilities, solved = np.array([0.95, 0.75, 0.72, 0.05]), np.array([True, True, False, False])
    found = report_on(probabilities, solved, 0.7, sites=["a", "a", "b", "b"], templates=["t", "u", "v", "w"])
    # Said: 0.95 of one that was so, 0.735 of two of which one was, 0.05 of one that was not.
    assert found.ece == pytest.approx((0.05 + 2 * abs(0.735 - 0.5) + 0.05) / 4)
    assert found.accuracy == 0.75
    assert (found.agreement.both, found.agreement.only_second, found.by_site["b"].n) == (2, 1, 2)
    assert (found.n, found.successes, found.templates) == (4, 2, 4)
