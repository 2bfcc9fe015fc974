"""The statistics agree with hand-worked numbers and with scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.intervals import bootstrap_seeds, mcnemar, paired_permutation, wilson, wilson_of_tasks

stats = pytest.importorskip("scipy.stats")


def test_wilson_gives_the_textbook_interval() -> None:
    interval = wilson(10, 20)
    assert interval.value == 0.5
    assert interval.low == pytest.approx(0.2993, abs=1e-4)
    assert interval.high == pytest.approx(0.7007, abs=1e-4)


@pytest.mark.parametrize(("successes", "n"), [(0, 7), (7, 7), (1, 3), (33, 100), (999, 1000)])
def test_wilson_agrees_with_scipy(successes: int, n: int) -> None:
    expected = stats.binomtest(successes, n).proportion_ci(method="wilson")
    interval = wilson(successes, n)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_of_nothing_knows_nothing_and_impossible_counts_are_refused() -> None:
    empty = wilson(0, 0)
    assert math.isnan(empty.value)
    assert (empty.low, empty.high) == (0.0, 1.0)
    with pytest.raises(ValueError, match="found 3 of 2"):
        wilson(3, 2)


def test_bootstrap_weighs_seeds_equally_and_is_repeatable() -> None:
    runs = [[1.0] * 30 + [0.0] * 10, [0.0, 1.0]]
    first, second = (bootstrap_seeds(runs, resamples=500, seed=3) for _ in range(2))
    assert first == second
    assert first.value == pytest.approx((0.75 + 0.5) / 2)
    assert first.low < first.value < first.high


def test_bootstrap_of_constant_outcomes_is_a_point() -> None:
    interval = bootstrap_seeds([[1.0] * 5, [1.0] * 9], resamples=200)
    assert (interval.low, interval.value, interval.high) == (1.0, 1.0, 1.0)


def test_bootstrap_width_of_one_seed_is_that_of_the_binomial() -> None:
    interval = bootstrap_seeds([[1.0] * 50 + [0.0] * 50], resamples=4000)
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * 0.05, rel=0.1)


def test_bootstrap_sees_the_spread_between_seeds() -> None:
    apart = bootstrap_seeds([[1.0] * 100, [0.0] * 100], resamples=500)
    assert (apart.low, apart.high) == (0.0, 1.0)


def test_bootstrap_refuses_an_empty_seed() -> None:
    with pytest.raises(ValueError, match=r"\[2, 0\]"):
        bootstrap_seeds([[1.0, 0.0], []])


def test_mcnemar_by_hand() -> None:
    # 5 tasks only the first solved, 1 only the second: 2 * (C(6,0) + C(6,1)) / 2**6 = 14/64.
    first = [True] * 5 + [False] + [True] * 4
    second = [False] * 5 + [True] + [True] * 4
    assert mcnemar(first, second) == pytest.approx(14 / 64)
    assert mcnemar(second, first) == pytest.approx(14 / 64)


def test_mcnemar_of_equal_results_is_one_and_lengths_must_agree() -> None:
    assert mcnemar([True, False], [True, False]) == 1.0
    with pytest.raises(ValueError, match="same tasks"):
        mcnemar([True], [True, False])


def test_permutation_by_hand_and_equal_to_mcnemar_on_booleans() -> None:
    # Three pairs, all better by one: only the two unanimous flips of eight are as extreme.
    assert paired_permutation([1, 1, 1], [0, 0, 0]) == pytest.approx(2 / 8)
    generator = np.random.default_rng(0)
    first, second = (generator.random(14) < 0.5 for _ in range(2))
    exact = mcnemar(first.tolist(), second.tolist())
    assert paired_permutation(first.tolist(), second.tolist()) == pytest.approx(exact)


def test_permutation_of_many_pairs_approximates_and_is_never_zero() -> None:
    generator = np.random.default_rng(1)
    better = generator.normal(1.0, 1.0, 200)
    assert 0 < paired_permutation(better, np.zeros(200), resamples=999) <= 0.002
    balanced = np.tile([1.0, -1.0], 50)
    assert paired_permutation(balanced, np.zeros(100), resamples=999) == pytest.approx(1.0)


def test_passes_of_one_task_count_as_what_they_are_worth() -> None:
    # 50 tasks, of which half are always solved: eight passes tell no more than one.
    once = wilson(25, 50)
    again = wilson_of_tasks([[True] * 8] * 25 + [[False] * 8] * 25)
    assert (again.value, again.low, again.high) == pytest.approx((0.5, once.low, once.high), abs=0.003)
    # Passes that are as independent as tasks count as episodes do.
    fair = wilson_of_tasks([[(i >> bit) & 1 == 1 for bit in range(4)] for i in range(16)])
    assert fair.high - fair.low == pytest.approx(wilson(32, 64).high - wilson(32, 64).low, rel=0.04)
    assert wilson_of_tasks([[True], [False], [True]]) == wilson(2, 3)
    alike = wilson_of_tasks([[True] * 8] * 10)
    assert (alike.value, alike.low) == (1.0, wilson(10, 10).low)
    assert wilson_of_tasks([[True, False]]).high - wilson_of_tasks([[True, False]]).low > 0.8, "one task says little"
    assert math.isnan(wilson_of_tasks([]).value)
