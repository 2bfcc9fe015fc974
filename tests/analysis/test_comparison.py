"""Levels of an arm and paired differences of two, worked by hand."""

from __future__ import annotations

import pytest

from analysis.comparison import Seeds, difference, level


def seeds(*by_seed: dict[str, float]) -> Seeds:
    return {number: {"test": outcomes} for number, outcomes in enumerate(by_seed)}


def test_a_level_is_the_mean_of_the_seeds_whatever_their_numbers_of_tasks() -> None:
    found = level(seeds({"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}, {"a": 1.0, "b": 1.0}), "test")
    assert found["by_seed"] == [0.25, 1.0]
    assert found["mean"]["value"] == 0.625
    assert found["pooled"]["value"] == 0.5
    assert found["mean"]["low"] < 0.625 < found["mean"]["high"]


@pytest.mark.parametrize(("outcome", "low", "high"), [(0.0, 0.0, 0.0277), (1.0, 0.9723, 1.0)])
def test_where_all_tasks_end_alike_the_interval_still_has_a_width(outcome: float, low: float, high: float) -> None:
    alike = {str(task): outcome for task in range(45)}
    found = level(seeds(alike, alike, alike), "test")
    assert found["mean"] == found["pooled"]
    assert found["mean"] == pytest.approx({"value": outcome, "low": low, "high": high}, abs=1e-4)  # z^2 / (135 + z^2)


def test_a_share_that_is_the_same_everywhere_is_no_rate() -> None:
    assert level(seeds({"a": 0.5, "b": 0.5}), "test")["mean"] == {"value": 0.5, "low": 0.5, "high": 0.5}


def test_a_difference_is_paired_by_seed_and_task() -> None:
    first = seeds({"a": 1.0, "b": 1.0, "only here": 1.0}, {"a": 1.0, "b": 0.0})
    second = seeds({"a": 0.0, "b": 1.0}, {"a": 0.0, "b": 0.0, "only there": 1.0})
    found = difference(first, second, "test")
    assert found["by_seed"] == [0.5, 0.5]
    assert found["mean"]["value"] == 0.5
    assert found["p_permutation"] == 1.0, "one task differs, which is a fair coin"
    assert found["p_mcnemar"] == [1.0, 1.0]
