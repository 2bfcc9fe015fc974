"""Credit of a phase's batch, with numbers worked by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from learner.advantages import Advantages
from learner.algorithms import resolve
from learner.credit import Credit, assign_credit
from learner.phase_batch import PhaseBatch
from learner.settings import LearnerSettings
from records.episodes import Trajectory

Make = Callable[..., Trajectory]


def steps(actions: list[int]) -> list[tuple[list[int], list[int]]]:
    return [([3, 4], [action, 2]) for action in actions]


def credit(settings: LearnerSettings, *episodes: Trajectory, **answers: list[np.ndarray]) -> Credit:
    batch = PhaseBatch(episodes, fresh=len(episodes), phase=1, answers=answers)
    return assign_credit(batch, resolve(settings), settings)


def test_credit_of_two_trajectories_by_hand(trajectory: Make) -> None:
    # gamma 0.9, alpha 0.3, lambda 0.5, V = (0.4, 0.7), P = (0.2, 0.6), success: r' = (0.12, 1).
    # G = (0.12 + 0.9, 1) = (1.02, 1).  A_0 = 0.5 (0.12 + 0.63 - 0.4) + 0.5 (1.02 - 0.4) = 0.175 + 0.31 = 0.485.
    # A_1 = 1 - 0.7 = 0.3.  Second episode, one failed step, V = 0.5: A = -0.5, no shaping at a last step.
    found = credit(
        LearnerSettings(),
        trajectory(steps([5, 6])),
        trajectory(steps([7]), outcome=0.0),
        value=[np.array([0.4, 0.7]), np.array([0.5])],
        potential=[np.array([0.2, 0.6]), np.array([0.9])],
    )
    np.testing.assert_allclose(found.advantages.steps, [0.485, 0.3, -0.5])
    np.testing.assert_allclose(found.shaping, [0.12, 0.0, 0.0])
    np.testing.assert_allclose(found.at(np.array([2, 0])).advantages.steps, [-0.5, 0.485])


def test_credit_of_a_last_action_by_hand(trajectory: Make) -> None:
    # As above, with P(s_T) = 0.9 known: r' = (0.12, 1 + 0.3 (0.9 - 0.6)) = (0.12, 1.09). G = (0.12 + 0.981, 1.09).
    # A_0 = 0.5 (0.12 + 0.63 - 0.4) + 0.5 (1.101 - 0.4) = 0.175 + 0.3505 = 0.5255.  A_1 = 1.09 - 0.7 = 0.39: V after the
    # last action is 0 and not the 0.8 that a critic says there. The failure: A = 0.3 (0.2 - 0.9) - 0.5 = -0.71.
    answers: dict[str, list[np.ndarray]] = {
        "value": [np.array([0.4, 0.7, 0.8]), np.array([0.5, 0.5])],
        "potential": [np.array([0.2, 0.6, 0.9]), np.array([0.9, 0.2])],
    }
    episodes = trajectory(steps([5, 6]), final=[3, 9]), trajectory(steps([7]), outcome=0.0, final=[3, 9])
    found = credit(LearnerSettings(), *episodes, **answers)
    np.testing.assert_allclose(found.advantages.steps, [0.5255, 0.39, -0.71])
    np.testing.assert_allclose(found.shaping, [0.12, 0.09, -0.21])
    # pbrs: P after the last action is 0 all the same: 0.3 (0 - 0.6) and 0.3 (0 - 0.9).
    found = credit(LearnerSettings(reward="pbrs"), *episodes, **answers)
    np.testing.assert_allclose(found.shaping, [0.102, -0.18, -0.27])


def test_credit_of_judged_steps_by_hand(trajectory: Make) -> None:
    # gamma 0.9, alpha 0.4, lambda 0.5, s = (1, 0), T = 2: r' = (0.2, 1). V = (0.4, 0.7).
    # G = (0.2 + 0.9, 1).  A_0 = 0.5 (0.2 + 0.63 - 0.4) + 0.5 (1.1 - 0.4) = 0.215 + 0.35 = 0.565.  A_1 = 0.3.
    settings = LearnerSettings(reward="process", alpha=0.4)
    played = trajectory(steps([5, 6]))
    judged = replace(played, steps=tuple(replace(s, reward=r) for s, r in zip(played.steps, (1.0, 0.0), strict=True)))
    found = credit(settings, judged, value=[np.array([0.4, 0.7])])
    np.testing.assert_allclose(found.advantages.steps, [0.565, 0.3])
    np.testing.assert_allclose(found.shaping, [0.2, 0.0])
    assert resolve(settings).critics == ("value",)
    with pytest.raises(ValueError, match=r"a judge's word on each step, found none; name .* replay.step_rewards"):
        credit(settings, played, value=[np.array([0.4, 0.7])])


def test_judged_steps_are_compared_within_a_group(trajectory: Make) -> None:
    # Both failed; alpha 0.3: one earned 0.3 and one 0.15, so 1 and -1.
    settings = LearnerSettings(reward="process", advantage="group_relative", data="rollouts", alpha=0.3)
    episodes = []
    for rewards in ((1.0, 1.0), (1.0, 0.0)):
        played = trajectory(steps([5, 6]), outcome=0.0, group="a")
        right = tuple(replace(s, reward=r) for s, r in zip(played.steps, rewards, strict=True))
        episodes.append(replace(played, steps=right))
    np.testing.assert_allclose(credit(settings, *episodes).advantages.steps, [1, 1, -1, -1])


def test_credit_needs_an_advantage(trajectory: Make) -> None:
    with pytest.raises(ValueError, match="no advantages"):
        credit(LearnerSettings(algorithm="filtered_bc"), trajectory(steps([5])))


def test_group_relative_advantages_by_hand(trajectory: Make) -> None:
    # Group a: rewards 1, 0, 0, 0: mean 1/4, std sqrt(3)/4, so sqrt(3) and -1/sqrt(3), the same in all steps.
    # Group b: both solved, so nothing is learned; group c has one member.
    settings = LearnerSettings(algorithm="awr", advantage="group_relative", data="rollouts")
    outcomes = [("a", 1.0), ("b", 1.0), ("a", 0.0), ("b", 1.0), ("a", 0.0), ("c", 0.0), ("a", 0.0)]
    episodes = [trajectory(steps([5, 6]), outcome=outcome, group=group) for group, outcome in outcomes]
    found = credit(settings, *episodes)
    won, lost = 3**0.5, -(3**-0.5)
    expected = np.repeat([won, 0.0, lost, 0.0, lost, 0.0, lost], 2)
    np.testing.assert_allclose(found.advantages.steps, expected, atol=1e-12)
    assert resolve(settings).critics == ()


def test_group_relative_advantages_compare_shaped_rewards_too(trajectory: Make) -> None:
    # alpha 0.5: summed rewards 1 + 0.5 (0.6 - 0.2) = 1.2 and 0 + 0.5 (0.4 - 0.0) = 0.2: a pair, so 1 and -1.
    settings = LearnerSettings(advantage="group_relative", data="rollouts", alpha=0.5)
    episodes = [trajectory(steps([5, 6]), outcome=outcome, group="a") for outcome in (1.0, 0.0)]
    found = credit(settings, *episodes, potential=[np.array([0.2, 0.6]), np.array([0.0, 0.4])])
    np.testing.assert_allclose(found.advantages.steps, [1.0, 1.0, -1.0, -1.0])
    np.testing.assert_allclose(found.shaping, [0.2, 0.0, 0.2, 0.0])
    assert resolve(settings).critics == ("potential",)


def test_group_relative_advantages_need_groups(trajectory: Make) -> None:
    settings = LearnerSettings(algorithm="awr", advantage="group_relative", data="rollouts")
    with pytest.raises(ValueError, match="episode e0: expected a group, found none"):
        credit(settings, trajectory(steps([5])))


def test_tokens_share_their_decisions_advantage_unless_they_have_their_own() -> None:
    shared = Advantages(np.array([0.5, -1.0, 2.0])).at([0, 2])
    assert [row.tolist() for row in shared.per_token([2, 1])] == [[0.5, 0.5], [2.0]]
    own = Advantages(np.array([0.5, 2.0]), (np.array([0.0, 1.0]), np.array([2.0]))).at([1])
    assert [row.tolist() for row in own.per_token([1])] == [[2.0]]
