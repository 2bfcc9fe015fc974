"""Advantages with numbers worked by hand (eq. 10 and 11)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.advantages import (
    digirl_advantages,
    discounted_returns,
    doubly_robust_advantages,
    return_advantages,
    td_advantages,
    undiscounted_advantages,
    value_difference_advantages,
    webrl_released_advantages,
)

REWARDS = np.array([0.12, -0.03, 1.0])
VALUES = np.array([0.4, 0.7, 0.8])


def test_returns_by_hand() -> None:
    # G_2 = 1;  G_1 = -0.03 + 0.9 * 1 = 0.87;  G_0 = 0.12 + 0.9 * 0.87 = 0.903.
    np.testing.assert_allclose(discounted_returns(REWARDS, 0.9), [0.903, 0.87, 1.0])


def test_td_by_hand() -> None:
    # 0.12 + 0.9*0.7 - 0.4 = 0.35;  -0.03 + 0.9*0.8 - 0.7 = -0.01;  1 + 0 - 0.8 = 0.2 (V after the last is 0).
    np.testing.assert_allclose(td_advantages(REWARDS, VALUES, 0.9, 1.0), [0.35, -0.01, 0.2])


def test_doubly_robust_by_hand() -> None:
    # G - V = 0.503, 0.17, 0.2.  lam 0.25:  0.25*0.35 + 0.75*0.503 = 0.46475;  -0.0025 + 0.1275 = 0.125;  0.2.
    np.testing.assert_allclose(doubly_robust_advantages(REWARDS, VALUES, 0.9, 0.25), [0.46475, 0.125, 0.2])


def test_value_difference_by_hand() -> None:
    # outcome rewards, no discount: 0.7 - 0.4 = 0.3;  0.8 - 0.7 = 0.1;  1 - 0.8 = 0.2.
    np.testing.assert_allclose(
        value_difference_advantages(np.array([0.0, 0.0, 1.0]), VALUES, 0.9, 0.5), [0.3, 0.1, 0.2]
    )


def test_undiscounted_by_hand() -> None:
    # WebRL: TD errors 0.3, 0.1, 0.2 and r_T - V = 0.6, 0.3, 0.2, half of each; gamma has no say.
    rewards = np.array([0.0, 0.0, 1.0])
    for gamma in (0.9, 0.1):
        np.testing.assert_allclose(undiscounted_advantages(rewards, VALUES, gamma, 0.5), [0.45, 0.2, 0.2])
    # A failure: TD errors 0.3, 0.1, -0.8 and -V.
    np.testing.assert_allclose(undiscounted_advantages(np.zeros(3), VALUES, 0.9, 0.5), [-0.05, -0.3, -0.8])


def test_digirl_by_hand() -> None:
    # lam 0.5: weights 1/4, 1/2 and 1 of the outcome; TD errors 0.3, 0.1: 0.25 + 0.225, 0.5 + 0.05, 1.
    np.testing.assert_allclose(digirl_advantages(np.array([0.0, 0.0, 1.0]), VALUES, 0.9, 0.5), [0.475, 0.55, 1.0])
    # A failure: 3/4 of 0.3, 1/2 of 0.1, and nothing at its last step.
    np.testing.assert_allclose(digirl_advantages(np.zeros(3), VALUES, 0.9, 0.5), [0.225, 0.05, 0.0])


def test_webrl_released_by_hand() -> None:
    # G = 0.81, 0.9, 1.  0.3 - 0.05 + 0.81 = 1.06 -> 1;  0.1 - 0.05 + 0.9 = 0.95;  0.2 - 0.05 + 1 = 1.15 -> 1.
    rewards = np.array([0.0, 0.0, 1.0])
    np.testing.assert_allclose(webrl_released_advantages(rewards, VALUES, 0.9, 0.5), [1.0, 0.95, 1.0])


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_lambda_runs_from_returns_to_td(steps: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    rewards, values = generator.normal(size=steps), generator.uniform(size=steps)
    np.testing.assert_array_equal(
        doubly_robust_advantages(rewards, values, 0.9, 0.0), return_advantages(rewards, values, 0.9, 0.0)
    )
    np.testing.assert_array_equal(
        doubly_robust_advantages(rewards, values, 0.9, 1.0), td_advantages(rewards, values, 0.9, 1.0)
    )


def test_td_errors_sum_to_the_return() -> None:
    """Discounted TD errors telescope to G_0 - V(s_0)."""
    discounted = (0.9 ** np.arange(3)) @ td_advantages(REWARDS, VALUES, 0.9, 1.0)
    assert discounted == pytest.approx(0.903 - 0.4)
