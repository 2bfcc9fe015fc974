"""Who may teach what."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from learner.algorithms import resolve
from learner.credit import assign_credit
from learner.dataset import best_against_start, outcome_targets, progress_targets, teaches_progress
from learner.settings import LearnerSettings, PotentialDataSettings
from records.episodes import Trajectory

RULES = PotentialDataSettings()


def steps(actions: list[int]) -> list[tuple[list[int], list[int]]]:
    return [([3, 4], [action, 2]) for action in actions]


def test_progress_is_taught_by_clean_successes(trajectory: Callable[..., Trajectory]) -> None:
    assert teaches_progress(trajectory(steps([5, 6, 7])), RULES)
    assert not teaches_progress(trajectory(steps([5, 6, 7]), outcome=0.0), RULES)
    assert teaches_progress(trajectory(steps(list(range(14)))), RULES)
    assert not teaches_progress(trajectory(steps(list(range(15)))), RULES)
    assert teaches_progress(trajectory(steps([5] * 5 + [6] + [5])), RULES)
    assert not teaches_progress(trajectory(steps([5] * 6 + [6])), RULES)


def test_targets_by_hand(trajectory: Callable[..., Trajectory]) -> None:
    # K = 4; one milestone done in state 2, all at the end (T = 4). m = 3, so t_1 = 2 and t_2 = t_3 = t_4 = 4:
    # 0 to 1/4 over states 0..2 gives 0, 1/8, 1/4; from 1/4 at 2 to 2/4 at 4 gives 3/8 at state 3.
    success = trajectory(steps([5, 6, 7, 8]), reached=[0, 0, 1, 1, 4])
    np.testing.assert_allclose(progress_targets([success]), [0.0, 0.125, 0.25, 0.375])
    failure = trajectory(steps([5, 6]), outcome=0.0)
    assert outcome_targets([success, failure]).tolist() == [1.0] * 4 + [0.0] * 2


def test_the_instruction_filter_keeps_the_pleasant_surprises(trajectory: Callable[..., Trajectory]) -> None:
    # outcome - V(s_0): 1 - 0.9 = 0.1;  0 - 0.1 = -0.1;  1 - 0.2 = 0.8;  0 - 0.8 = -0.8.
    episodes = [trajectory(steps([5]), outcome=outcome) for outcome in (1.0, 0.0, 1.0, 0.0)]
    kept = best_against_start(episodes, np.array([0.9, 0.1, 0.2, 0.8]), 0.5)
    assert kept.tolist() == [True, False, True, False]


def test_credit_of_two_trajectories_by_hand(trajectory: Callable[..., Trajectory]) -> None:
    # gamma 0.9, alpha 0.3, lambda 0.5, V = (0.4, 0.7), P = (0.2, 0.6), success: r' = (0.12, 1).
    # G = (0.12 + 0.9, 1) = (1.02, 1).  A_0 = 0.5 (0.12 + 0.63 - 0.4) + 0.5 (1.02 - 0.4) = 0.175 + 0.31 = 0.485.
    # A_1 = 1 - 0.7 = 0.3.  Second episode, one failed step, V = 0.5: A = -0.5, no shaping at a last step.
    episodes = [trajectory(steps([5, 6])), trajectory(steps([7]), outcome=0.0)]
    settings = LearnerSettings()
    answers = {
        "value": [np.array([0.4, 0.7]), np.array([0.5])],
        "potential": [np.array([0.2, 0.6]), np.array([0.9])],
    }
    credit = assign_credit(episodes, answers, resolve(settings), settings)
    np.testing.assert_allclose(credit.advantages, [0.485, 0.3, -0.5])
    np.testing.assert_allclose(credit.shaping, [0.12, 0.0, 0.0])


def test_credit_needs_an_advantage(trajectory: Callable[..., Trajectory]) -> None:
    settings = LearnerSettings(algorithm="filtered_bc")
    with pytest.raises(ValueError, match="no advantages"):
        assign_credit([trajectory(steps([5]))], {}, resolve(settings), settings)
