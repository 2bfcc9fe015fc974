"""Rewards with numbers worked by hand, and the invariance that pbrs promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.rewards import (
    difference_rewards,
    difference_shaping,
    outcome_rewards,
    pbrs_rewards,
    pbrs_shaping,
    process_rewards,
)

POTENTIALS = np.array([0.2, 0.6, 0.5])


def test_outcome_is_paid_at_the_last_step_only() -> None:
    np.testing.assert_array_equal(outcome_rewards(1.0, POTENTIALS, 0.3, 0.9), [0.0, 0.0, 1.0])


def test_difference_rewards_by_hand() -> None:
    # 0 + 0.3 * (0.6 - 0.2) = 0.12;  0 + 0.3 * (0.5 - 0.6) = -0.03;  the last step keeps its outcome alone: 1.
    np.testing.assert_allclose(difference_rewards(1.0, POTENTIALS, 0.3, 0.9), [0.12, -0.03, 1.0])


def test_pbrs_rewards_by_hand() -> None:
    # 0.3 * (0.9*0.6 - 0.2) = 0.102;  0.3 * (0.9*0.5 - 0.6) = -0.045;  1 + 0.3 * (0 - 0.5) = 0.85.
    np.testing.assert_allclose(pbrs_rewards(1.0, POTENTIALS, 0.3, 0.9), [0.102, -0.045, 0.85])


def test_the_last_action_is_shaped_where_the_state_after_it_is_known() -> None:
    # 1 + 0.3 * (0.9 - 0.5) = 1.12; with pbrs P is 0 after the last action, whatever is known: 0.85 as before.
    np.testing.assert_allclose(difference_rewards(1.0, POTENTIALS, 0.3, 0.9, 0.9), [0.12, -0.03, 1.12])
    np.testing.assert_array_equal(pbrs_rewards(1.0, POTENTIALS, 0.3, 0.9, 0.9), pbrs_rewards(1.0, POTENTIALS, 0.3, 0.9))
    np.testing.assert_array_equal(outcome_rewards(1.0, POTENTIALS, 0.3, 0.9, 0.9), [0.0, 0.0, 1.0])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30).map(np.array))
def test_difference_shaping_telescopes_to_the_final_state(potentials: np.ndarray) -> None:
    assert abs(difference_shaping(potentials[:-1], potentials[-1]).sum() - (potentials[-1] - potentials[0])) < 1e-12


def test_a_single_step_has_no_difference_shaping() -> None:
    np.testing.assert_array_equal(difference_rewards(0.0, np.array([0.7]), 0.3, 0.9), [0.0])


@given(
    st.lists(st.integers(0, 2**20), min_size=1, max_size=20).map(lambda p: np.array(p, dtype=np.float64) / 2**20),
    st.sampled_from([1.0, 0.5, 0.25]),
)
def test_pbrs_telescopes_exactly(potentials: np.ndarray, gamma: float) -> None:
    """Potentials and gammas that float64 holds exactly: sum_t gamma^t * aux_t is -P(s_0) to the bit."""
    discounts = gamma ** np.arange(len(potentials))
    # 20-bit potentials and at most 2 * 19 further bits of gamma's powers: short sums stay exact.
    if len(potentials) * -np.log2(gamma) <= 30:
        assert float(discounts @ pbrs_shaping(potentials, gamma)) == -potentials[0]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30).map(lambda p: np.array(p, dtype=np.float64)),
    st.floats(0, 1),
)
def test_pbrs_telescopes_for_any_gamma(potentials: np.ndarray, gamma: float) -> None:
    discounts = gamma ** np.arange(len(potentials))
    assert abs(float(discounts @ pbrs_shaping(potentials, gamma)) + potentials[0]) < 1e-13


def test_process_rewards_by_hand() -> None:
    # alpha 0.3 over 3 steps: 0.1 for each right step, half of it for a half-right one.
    np.testing.assert_allclose(process_rewards(1.0, np.array([1.0, 0.0, 0.5]), 0.3, 0.9), [0.1, 0.0, 1.05])


def test_right_steps_earn_no_more_by_being_many() -> None:
    once, often = (process_rewards(0.0, np.ones(count), 0.3, 0.9).sum() for count in (2, 20))
    assert once == pytest.approx(often) == pytest.approx(0.3)
