"""Who may teach what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from learner.dataset import (
    episode_numbers,
    outcome_targets,
    per_trajectory,
    progress_targets,
    states,
    teaches_progress,
)
from learner.settings import PotentialDataSettings
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
    looped = trajectory(steps([5] * 6 + [6]))
    remarks = [replace(step, action_text=f"# Note: {i}\n{step.action_text}") for i, step in enumerate(looped.steps)]
    assert not teaches_progress(replace(looped, steps=tuple(remarks)), RULES), "another remark is no other action"


def test_all_episodes_may_teach_progress_and_long_is_what_the_task_makes_it(
    trajectory: Callable[..., Trajectory],
) -> None:
    failure, long = trajectory(steps([5, 6, 7]), outcome=0.0), trajectory(steps(list(range(20))))
    assert teaches_progress(failure, PotentialDataSettings(labels="all"))
    assert not teaches_progress(trajectory(steps([5]), milestone_count=0), PotentialDataSettings(labels="all"))
    relative = PotentialDataSettings(max_horizons=2.0)
    assert teaches_progress(replace(long, horizon=11), relative)
    assert not teaches_progress(replace(long, horizon=10), relative)
    assert not teaches_progress(long, relative), "no expert: the absolute limit"


def test_labels_of_all_episodes_by_hand(trajectory: Callable[..., Trajectory]) -> None:
    # c_t / K in steps. A failure that has all four before its last action lacks something: at most 3/4.
    success = trajectory(steps([5, 6, 7, 8]), reached=[0, 0, 1, 2, 4])
    failure = trajectory(steps([5, 6, 7, 8]), outcome=0.0, reached=[0, 1, 4, 4, 4])
    found = progress_targets([success, failure], "all")
    np.testing.assert_allclose(found, [0, 0, 0.25, 0.5, 0, 0.25, 0.75, 0.75])


def test_a_recorded_final_state_is_one_more_state_of_progress(trajectory: Callable[..., Trajectory]) -> None:
    ended = trajectory(steps([5, 6]), reached=[0, 1, 4], final=[3, 9, 9])
    failed = trajectory(steps([7]), outcome=0.0, reached=[0, 4], final=[3, 8])
    plain = trajectory(steps([5, 6]), reached=[0, 1, 2])
    episodes = [ended, plain, failed]
    assert [s.prompt_ids.tolist() for s in states(episodes, final=True)] == [
        [3, 4], [3, 4], [3, 9, 9], [3, 4], [3, 4], [3, 4], [3, 8]
    ]  # fmt: skip
    assert all(len(state.action_ids) == 0 for state in states(episodes, final=True))
    assert len(states(episodes)) == 5, "nobody else sees it"
    assert episode_numbers(episodes, final=True).tolist() == [0, 0, 0, 1, 1, 2, 2]
    split = per_trajectory(np.arange(7), episodes, final=True)
    assert [part.tolist() for part in split] == [[0, 1, 2], [3, 4], [5, 6]]
    # Eq. 2: 1 at the end of a success. K = 4, t_1 = 1, and the others at T = 2 anchor to the end.
    np.testing.assert_allclose(progress_targets([ended]), [0, 0.25, 1])
    np.testing.assert_allclose(progress_targets([plain])[:1], [0])
    assert len(progress_targets([plain])) == 2
    # c_T / K with labels of all episodes, at most 3/4 in a failure.
    np.testing.assert_allclose(progress_targets([ended, failed], "all"), [0, 0.25, 1, 0, 0.75])
    assert len(outcome_targets(episodes)) == 5, "V is 0 after the last action"


def test_targets_by_hand(trajectory: Callable[..., Trajectory]) -> None:
    # K = 4; one milestone done in state 2, all at the end (T = 4). m = 3, so t_1 = 2 and t_2 = t_3 = t_4 = 4:
    # 0 to 1/4 over states 0..2 gives 0, 1/8, 1/4; from 1/4 at 2 to 2/4 at 4 gives 3/8 at state 3.
    success = trajectory(steps([5, 6, 7, 8]), reached=[0, 0, 1, 1, 4])
    np.testing.assert_allclose(progress_targets([success]), [0.0, 0.125, 0.25, 0.375])
    failure = trajectory(steps([5, 6]), outcome=0.0)
    assert outcome_targets([success, failure]).tolist() == [1.0] * 4 + [0.0] * 2
