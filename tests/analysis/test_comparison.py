"""Levels of an arm and paired differences of two, worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.comparison import Seeds, difference, level


def seeds(*by_seed: dict[str, float]) -> Seeds:
    return {number: {"test": outcomes} for number, outcomes in enumerate(by_seed)}


def test_a_level_is_the_mean_of_the_seeds_whatever_their_numbers_of_tasks() -> None:
    found = level(seeds({"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}, {"a": 1.0, "b": 1.0}), "test")
    assert found["by_seed"] == [0.25, 1.0]
    assert found["mean"]["value"] == 0.625
    assert found["mean"]["low"] < 0.625 < found["mean"]["high"]


@pytest.mark.parametrize(("outcome", "low", "high"), [(0.0, 0.0, 0.0959), (1.0, 0.9041, 1.0)])
def test_where_all_tasks_end_alike_the_interval_still_has_a_width(outcome: float, low: float, high: float) -> None:
    """Three seeds of 45 tasks that end alike are worth 45, with two of each kind counted in: 2/49 + z * 0.0283."""
    alike = {str(task): outcome for task in range(45)}
    found = level(seeds(alike, alike, alike), "test")
    assert found["mean"] == pytest.approx({"value": outcome, "low": low, "high": high}, abs=1e-3)


def test_a_share_that_is_the_same_everywhere_is_known_as_well_as_its_tasks_are_many() -> None:
    few, many = (level(seeds({str(task): 0.5 for task in range(tasks)}), "test")["mean"] for tasks in (2, 200))
    assert few["high"] - few["low"] > 0.4
    assert many["high"] - many["low"] < 0.03


def test_a_seed_without_a_judged_task_is_left_out() -> None:
    some: Seeds = {0: {"test": {"a": 1.0, "b": 0.0}}, 1: {"test": {}}, 2: {"other": {"a": 1.0}}}
    assert level(some, "test")["seeds"] == [0]
    assert difference(some, {0: {"test": {"a": 0.0}}, 1: {"test": {"a": 0.0}}}, "test")["by_seed"] == [1.0]
    none = level(some, "nowhere")["mean"]
    assert math.isnan(none["value"])
    assert (none["low"], none["high"]) == (0.0, 1.0)


@pytest.mark.parametrize("solved", [0, 1, 3])
def test_where_few_tasks_or_none_differ_the_interval_still_has_a_width(solved: int) -> None:
    """Over two seeds of six tasks, one pair more of each kind is counted in: nothing is sure of so few.

    It is wider than that of Bonett and Price over twelve pairs, because six tasks are what both seeds played.
    """
    first = [{str(task): float(6 * seed + task < solved) for task in range(6)} for seed in (0, 1)]
    second = {str(task): 0.0 for task in range(6)}
    found = difference(seeds(*first), seeds(second, second), "test")["mean"]
    assert found["value"] == pytest.approx(solved / 12)
    gaps = np.array([1.0] * solved + [0.0] * (12 - solved) + [1.0, -1.0])
    half = 1.959964 * gaps.std() / np.sqrt(14)
    assert found["low"] <= gaps.mean() - half + 1e-6
    assert found["low"] < 0 < found["high"], "three of twelve pairs are no evidence"
    assert found["high"] >= gaps.mean() + half - 1e-6


def test_where_two_seeds_say_the_opposite_nothing_is_known() -> None:
    first = seeds({str(task): 1.0 for task in range(40)}, {str(task): 0.0 for task in range(40)})
    second = seeds(*[{str(task): 0.0 for task in range(40)}] * 2)
    found = difference(first, second, "test")["mean"]
    assert (found["low"], found["high"]) == (-1.0, 1.0), "two runs that say the opposite"


def test_a_difference_is_paired_by_seed_and_task() -> None:
    first = seeds({"a": 1.0, "b": 1.0, "only here": 1.0}, {"a": 1.0, "b": 0.0})
    second = seeds({"a": 0.0, "b": 1.0}, {"a": 0.0, "b": 0.0, "only there": 1.0})
    found = difference(first, second, "test")
    assert found["by_seed"] == [0.5, 0.5]
    assert found["mean"]["value"] == 0.5
    assert found["p_permutation"] == 1.0, "one task differs, which is a fair coin"
    assert found["p_mcnemar"] == [1.0, 1.0]
