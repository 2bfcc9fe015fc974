"""The statistics agree with hand-worked numbers and with scipy."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from analysis.intervals import (
    Interval,
    mcnemar,
    mean_of_seeds,
    paired_permutation,
    student95,
    wilson,
    wilson_of_tasks,
)

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


SHARE, GAP = Interval(math.nan, 0.0, 1.0), Interval(math.nan, -1.0, 1.0)
LEVELS, GAPS = (0.0, 0.0, 1.0, 1.0), (1.0, -1.0)


def crossed(rows: Sequence[Sequence[float]]) -> Sequence[dict[str, float]]:
    return [{str(task): float(value) for task, value in enumerate(row)} for row in rows]


def test_seeds_weigh_equally_and_the_interval_stays_within_its_bounds() -> None:
    found = mean_of_seeds(crossed([[1.0] * 30 + [0.0] * 10, [0.0, 1.0]]), LEVELS, SHARE)
    assert found.value == pytest.approx((0.75 + 0.5) / 2)
    assert found.low < found.value < found.high
    apart = mean_of_seeds(crossed([[1.0] * 100, [0.0] * 100]), LEVELS, SHARE)
    assert (apart.value, apart.low, apart.high) == (0.5, 0.0, 1.0), "two seeds that say the opposite"


def test_of_one_seed_the_interval_is_agrestis_and_coulls() -> None:
    found = mean_of_seeds(crossed([[1.0] * 5 + [0.0] * 35]), LEVELS, SHARE)
    # 40 tasks with their sample variance are worth 39; two of each kind are counted in beside them
    rate, n = (5 / 40 * 39 + 2) / 43, 43
    half = 1.959964 * math.sqrt(rate * (1 - rate) / n)
    assert (found.value, found.low, found.high) == pytest.approx((5 / 40, rate - half, rate + half), abs=1e-6)


def test_tasks_count_once_however_many_seeds_play_them() -> None:
    """Fifteen tasks that all seeds solve and fifteen that none does: five seeds tell no more than one."""
    once, again = (mean_of_seeds(crossed([[1.0] * 15 + [0.0] * 15] * seeds), LEVELS, SHARE) for seeds in (1, 5))
    assert (again.value, again.low, again.high) == pytest.approx((once.value, once.low, once.high))
    # as many outcomes of which each is a coin of its own tell more
    coins = [[float((task >> seed) & 1) for task in range(32)] for seed in range(5)]
    found = mean_of_seeds(crossed(coins), LEVELS, SHARE)
    assert found.high - found.low == pytest.approx(2 * 1.96 * 0.5 / math.sqrt(160), rel=0.05)


def test_a_variance_between_seeds_is_widened_by_students_quantile() -> None:
    """Gaps that are each seed's own and the same on every task: nothing but the seeds differ."""
    own, tasks = (0.1, 0.2, 0.6), 50
    found = mean_of_seeds(crossed([[gap] * tasks for gap in own]), GAPS, GAP)
    between = np.var(own, ddof=1) / 3
    counted = np.array([gap for gap in own for _ in range(tasks)])
    square = (float(np.mean(counted**2)) * tasks + 2) / (tasks + 2)
    centre = 0.3 * tasks / (tasks + 2)
    half = math.sqrt(1.959964**2 * (square - centre**2) / (tasks + 2) + stats.t.ppf(0.975, 2) ** 2 * between)
    assert (found.low, found.high) == pytest.approx((centre - half, centre + half), abs=1e-6)
    assert student95(2) == pytest.approx(4.302653, abs=1e-6)


@pytest.mark.parametrize("seeds", [1, 3])
def test_outcomes_that_are_all_alike_leave_a_width(seeds: int) -> None:
    found = mean_of_seeds(crossed([[0.0] * 12] * seeds), GAPS, GAP)
    half = 1.959964 * math.sqrt(2 / 14) / math.sqrt(14)
    assert (found.value, found.low, found.high) == pytest.approx((0.0, -half, half), abs=1e-6)
    one = mean_of_seeds([{"a": 1.0}], LEVELS, SHARE)
    assert one.low < 0.3 < one.high == 1.0


def test_a_task_that_a_seed_lacks_is_no_task_that_it_failed() -> None:
    rows = [[1.0, 0.0] * 20, [1.0, 1.0, 0.0, 0.0] * 10, [0.0, 1.0] * 20]
    whole = mean_of_seeds(crossed(rows), LEVELS, SHARE)
    holes = [dict(run) for run in crossed(rows)]
    for task in ("0", "1"):
        del holes[0][task]
    found = mean_of_seeds(holes, LEVELS, SHARE)
    assert found.value == whole.value == 0.5
    assert (found.low, found.high) == pytest.approx((whole.low, whole.high), abs=0.01)


@pytest.mark.parametrize(("seeds", "tasks"), [(3, 30), (5, 180)])
@pytest.mark.parametrize("of_seeds", [0.0, 0.1])
def test_two_arms_that_are_equal_are_told_apart_in_about_one_of_twenty(seeds: int, tasks: int, of_seeds: float) -> None:
    """Gaps with an effect of each task and of each seed, and noise; a bootstrap of three such seeds errs in 15 %."""
    generator = np.random.default_rng(7)
    wrong = 0
    for _ in range(400):
        chance = np.clip(
            0.3 + generator.normal(0, of_seeds, (2, seeds, 1)) + generator.normal(0, 0.2, (2, 1, tasks)), 0, 1
        )
        first, second = (generator.random(chance.shape) < chance).astype(float)
        found = mean_of_seeds(crossed(first - second), GAPS, GAP)
        wrong += not found.low <= 0 <= found.high
    assert wrong / 400 < 0.09
    assert wrong, "an interval that is never wrong is too wide"


def test_an_empty_seed_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\[2, 0\]"):
        mean_of_seeds([{"a": 1.0, "b": 0.0}, {}], LEVELS, SHARE)


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
    for pairs in (14, 60, 3000):
        first, second = (generator.random(pairs) < share for share in (0.5, 0.45))
        exact = mcnemar(first.tolist(), second.tolist())
        assert paired_permutation(first.tolist(), second.tolist()) == pytest.approx(exact, rel=1e-12)


def test_permutation_of_many_pairs_that_differ_unlike_is_near_that_of_pairs_that_differ_alike() -> None:
    first, second = np.array([1.0] * 30 + [0.0] * 18), np.array([0.0] * 30 + [1.0] * 18)
    unlike = first - np.linspace(0, 1e-6, 48)  # so that no flip of as many pairs is less extreme than what is seen
    assert paired_permutation(unlike, second) == pytest.approx(mcnemar(first > 0, second > 0), abs=0.015)


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
