"""Which steps of a phase the actor learns from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from learner.algorithms import DATA
from learner.data_choices import MASKS, best_against_start
from learner.phase_batch import PhaseBatch
from learner.settings import InstructionFilterSettings, LearnerSettings
from records.episodes import Trajectory

Make = Callable[..., Trajectory]


@pytest.fixture
def batch(trajectory: Make) -> PhaseBatch:
    """A solved and a failed rollout of two steps, then a solved replayed one of three, of which step 1 is released."""
    rollouts = [trajectory(steps([5, 6]), episode_id="won"), trajectory(steps([5, 6]), outcome=0.0, episode_id="lost")]
    crashed = trajectory(steps([5]), outcome=None, episode_id="crashed")
    replayed = [trajectory(steps([7, 8, 9]), episode_id="old"), rollouts[0]]
    batch = PhaseBatch.of([*rollouts, crashed], replayed, 3, {"old": [1]})
    # outcome - V(s_0): 1 - 0.9 = 0.1;  0 - 0.1 = -0.1;  1 - 0.2 = 0.8.
    return batch.with_answers({"value": [np.array([0.9, 0.0]), np.array([0.1, 0.0]), np.array([0.2, 0.0, 0.0])]})


def steps(actions: list[int]) -> list[tuple[list[int], list[int]]]:
    return [([3, 4], [action, 2]) for action in actions]


def test_a_batch_holds_each_judged_episode_once_the_phases_own_first(batch: PhaseBatch) -> None:
    assert [trajectory.episode_id for trajectory in batch.trajectories] == ["won", "lost", "old"]
    assert [trajectory.episode_id for trajectory in batch.rollouts] == ["won", "lost"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("demonstrations", "00 00 000"),
        ("successful_rollouts", "11 00 000"),
        ("successful_rollouts_and_replay", "11 00 010"),
        ("rollouts", "11 11 000"),
        ("rollouts_and_replay", "11 11 010"),
        ("rollouts_and_replay_by_instruction", "11 00 010"),
        ("rollouts_and_filtered_replay", "11 11 010"),
    ],
)
def test_every_choice_is_a_mask_over_the_steps(batch: PhaseBatch, name: str, expected: str) -> None:
    settings = LearnerSettings(instruction_filter=InstructionFilterSettings(keep=0.6))
    assert "".join("01"[int(kept)] for kept in MASKS[name](batch, settings)) == expected.replace(" ", "")


@pytest.mark.parametrize("name", DATA)
def test_every_choice_of_an_empty_batch_is_empty(name: str) -> None:
    empty = PhaseBatch.of([], [], 1).with_answers({"value": []})
    assert MASKS[name](empty, LearnerSettings()).shape == (0,)


def test_the_instruction_filter_keeps_the_pleasant_surprises(trajectory: Make) -> None:
    # outcome - V(s_0): 1 - 0.9 = 0.1;  0 - 0.1 = -0.1;  1 - 0.2 = 0.8;  0 - 0.8 = -0.8.
    episodes = [trajectory(steps([5]), outcome=outcome) for outcome in (1.0, 0.0, 1.0, 0.0)]
    kept = best_against_start(episodes, np.array([0.9, 0.1, 0.2, 0.8]), 0.5)
    assert kept.tolist() == [True, False, True, False]
