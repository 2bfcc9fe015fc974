"""The regression gate passes what is no worse, names what is worse, and says when it cannot tell."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.gate import GateVerdict, gate, paired_difference, tasks_needed

LEVEL = 0.95


def sides(both: int, only_old: int, only_new: int, neither: int) -> tuple[dict[str, float], dict[str, float]]:
    old = [1.0] * both + [1.0] * only_old + [0.0] * only_new + [0.0] * neither
    new = [1.0] * both + [0.0] * only_old + [1.0] * only_new + [0.0] * neither
    return {str(i): value for i, value in enumerate(old)}, {str(i): value for i, value in enumerate(new)}


def test_the_interval_is_bonett_and_prices() -> None:
    # 20 pairs, of which 6 only the new one solved and 2 only the old one: p12 = 3/22, p21 = 7/22.
    found = paired_difference([1.0] * 6 + [-1.0] * 2 + [0.0] * 12, LEVEL)
    centre = 4 / 22
    half = NormalDist().inv_cdf(LEVEL) * math.sqrt((10 / 22 - centre**2) / 22)
    assert found.value == pytest.approx(0.2)
    assert (found.low, found.high) == pytest.approx((centre - half, centre + half))


def test_equal_policies_pass_once_there_are_tasks_enough_and_are_refused_before() -> None:
    needed = tasks_needed([], 0.1, LEVEL)
    assert needed is not None
    assert gate(*sides(needed, 0, 0, 0), margin=0.1, level=LEVEL).verdict is GateVerdict.PASSED
    refused = gate(*sides(needed - 1, 0, 0, 0), margin=0.1, level=LEVEL)
    assert refused.verdict is GateVerdict.TOO_FEW
    assert f"about {needed} are needed" in refused.sentence


def test_as_many_tasks_as_are_said_to_be_needed_pass_eight_equal_policies_of_ten() -> None:
    """Sixty tasks of which twelve end otherwise are too few; as many as they ask for do, and half as many do not."""
    asked = gate(*sides(24, 6, 6, 24), margin=0.05, level=LEVEL)
    assert asked.verdict is GateVerdict.TOO_FEW
    assert asked.needed is not None
    generator = np.random.default_rng(0)

    def passed(tasks: int) -> float:
        drawn = generator.multinomial(tasks, [0.4, 0.1, 0.1, 0.4], size=400)
        found = [gate(*sides(*row), margin=0.05, level=LEVEL).verdict is GateVerdict.PASSED for row in drawn.tolist()]
        return sum(found) / len(found)

    assert passed(asked.needed) == pytest.approx(0.8, abs=0.06)
    assert passed(asked.needed // 2) < 0.65


def test_a_worse_policy_is_a_regression_and_a_better_one_passes_even_without_a_margin() -> None:
    worse = gate(*sides(20, 20, 2, 20), margin=0.1, level=LEVEL)
    assert worse.verdict is GateVerdict.REGRESSION
    assert worse.sentence.endswith("worse")
    assert worse.p < 0.01
    assert gate(*sides(20, 2, 20, 20), margin=0.0, level=LEVEL).verdict is GateVerdict.PASSED
    assert gate(*sides(20, 0, 0, 20), margin=0.0, level=LEVEL).verdict is GateVerdict.TOO_FEW


def test_a_margin_that_the_limit_only_reaches_is_not_kept() -> None:
    old, new = sides(20, 5, 5, 20)
    limit = gate(old, new, margin=0.0, level=LEVEL).difference
    assert limit is not None
    assert gate(old, new, margin=-limit.low, level=LEVEL).verdict is GateVerdict.TOO_FEW
    assert gate(old, new, margin=math.nextafter(-limit.low, 1.0), level=LEVEL).verdict is GateVerdict.PASSED


def test_only_tasks_of_both_count_and_none_is_never_a_pass() -> None:
    found = gate({"a": 1.0, "b": 1.0}, {"b": 0.0, "c": 1.0}, margin=0.1, level=LEVEL)
    assert (found.tasks, found.old, found.new) == (1, 1.0, 0.0)
    empty = gate({"a": 1.0}, {"b": 1.0}, margin=0.9, level=LEVEL)
    assert empty.verdict is GateVerdict.TOO_FEW
    assert "no such task" in empty.sentence


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_a_pass_and_a_regression_exclude_each_other_under_exchange(a: int, b: int, c: int, d: int) -> None:
    old, new = sides(a, b, c, d)
    there, back = (gate(*pair, margin=0.0, level=LEVEL).verdict for pair in ((old, new), (new, old)))
    assert (there is GateVerdict.PASSED) == (back is GateVerdict.REGRESSION)
