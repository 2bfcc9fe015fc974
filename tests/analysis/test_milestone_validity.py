"""Statistics of milestones against success: worked by hand, beside scipy, and what they reject."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.milestone_validity import Completion, equivalence, kendall_tau, validity

# Six episodes with K = 4: completed and success.
SIX = [(4, True), (4, True), (3, True), (3, False), (1, False), (4, False)]


def of(pairs: list[tuple[int, bool]], total: int = 4) -> list[Completion]:
    return [Completion(done, total, success, f"g{i}") for i, (done, success) in enumerate(pairs)]


def test_auroc_worked_by_hand() -> None:
    # Pairs of a success with a failure, 9: two successes of 4 against (3, 1, 4) win 2.5 each; that of 3 wins 1.5.
    found = validity(of(SIX))
    assert found.auroc.value == pytest.approx((2.5 + 2.5 + 1.5) / 9)


def test_equivalence_worked_by_hand() -> None:
    # Three completed all, two of them succeeded; three succeeded.
    found = equivalence(of(SIX))
    assert (found.precision, found.recall, found.f1) == pytest.approx((2 / 3, 2 / 3, 2 / 3))
    assert found.predicted == 3


def test_success_by_number_completed() -> None:
    by_completed = validity(of(SIX)).by_completed
    assert {level: (rate.success, rate.n) for level, rate in by_completed.items()} == {
        "1/4": (0.0, 1),
        "3/4": (0.5, 2),
        "4/4": (pytest.approx(2 / 3), 3),
    }


def test_milestones_that_nobody_completed_are_rejected_in_words() -> None:
    found = validity(of([(1, True), (3, False), (2, True), (0, False)]))
    assert any(line.startswith("no episode completed all of its milestones") for line in found.rejected)
    assert "nan" not in " ".join(found.rejected)


def test_numbers_of_milestones_that_differ_are_shown_as_shares() -> None:
    mixed = [Completion(1, 2, True, "a"), Completion(2, 4, False, "b"), Completion(3, 3, True, "c")]
    assert list(validity(mixed).by_completed) == ["1/2", "1/1"]


def test_tau_worked_by_hand() -> None:
    # Of nine pairs of a success with a failure five are in order, one is not and three are ties: 5 - 1. Of all fifteen
    # pairs four share their number of milestones, and six their outcome.
    tau, p = kendall_tau([float(done) for done, _ in SIX], [float(success) for _, success in SIX])
    assert tau == pytest.approx(4 / ((15 - 4) * (15 - 6)) ** 0.5)
    assert 0.05 < p < 1.0


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=3, max_size=60))
def test_tau_and_p_are_scipys(pairs: list[tuple[int, bool]]) -> None:
    x, y = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    tau, p = kendall_tau(x, y)
    wanted = stats.kendalltau(x, y, method="asymptotic")
    assert tau == pytest.approx(float(wanted.statistic), nan_ok=True, abs=1e-9)
    assert p == pytest.approx(float(wanted.pvalue), nan_ok=True, abs=1e-9)


def test_two_pairs_have_a_tau_and_no_p() -> None:
    tau, p = kendall_tau([1.0, 3.0], [1.0, 0.0])
    assert tau == -1.0
    assert math.isnan(p)


@pytest.mark.parametrize("pairs", [[], [(1, True)], [(1, True), (3, True)], [(2, True), (2, False), (2, True)]])
def test_there_is_no_tau_where_one_side_has_a_single_value(pairs: list[tuple[int, bool]]) -> None:
    assert all(map(math.isnan, kendall_tau([float(done) for done, _ in pairs], [float(one) for _, one in pairs])))


def simulated(link: float, seed: int = 0, count: int = 400) -> list[Completion]:
    """Episodes of 20 templates whose milestones follow their success with probability ``link``."""
    rng = random.Random(seed)
    made = []
    for i in range(count):
        success = rng.random() < 0.4
        follows = rng.random() < link
        done = (4 if success else rng.randrange(3)) if follows else rng.randrange(5)
        made.append(Completion(done, 4, success, f"t{i % 20}"))
    return made


def test_good_milestones_are_accepted() -> None:
    assert validity(simulated(0.9)).rejected == ()


def test_milestones_that_know_nothing_of_success_are_rejected_by_every_rule() -> None:
    assert len(validity(simulated(0.0)).rejected) == 3


def test_milestones_that_speak_against_success_are_rejected() -> None:
    wrong = [Completion(4 - one.completed, 4, one.success, one.group) for one in simulated(0.9)]
    assert len(validity(wrong).rejected) == 3


def test_too_few_episodes_prove_nothing() -> None:
    assert validity(of(SIX)).rejected
    assert validity([]).rejected
    assert validity(of([(4, True)] * 50)).rejected, "without a failure nothing was told apart"


def test_the_bootstrap_takes_templates_as_wholes() -> None:
    # Two templates, one always right and one always wrong: over episodes the interval is narrow, over templates wide.
    right = [Completion(4 if i % 2 else 0, 4, bool(i % 2), "right") for i in range(200)]
    wrong = [Completion(0 if i % 2 else 4, 4, bool(i % 2), "wrong") for i in range(200)]
    interval = validity([*right, *wrong]).auroc
    assert interval.value == pytest.approx(0.5)
    assert (interval.low, interval.high) == (0.0, 1.0)
