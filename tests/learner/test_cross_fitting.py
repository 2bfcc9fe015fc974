"""Cross-fitted critics: who learns from what, who judges what, and what that changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from learner.critics import predict
from learner.cross_fitting import CriticPair, half_of
from learner.dataset import states
from learner.memory import learner_memory
from learner.metrics import CriticMetrics
from learner.phase_batch import PhaseBatch
from learner.settings import CriticSettings, LearnerSettings
from learner.trainer import Learner
from policy.model_size import size_of_tiny
from policy.settings import TinyShape
from records.episodes import Trajectory

CRITIC = CriticSettings(learning_rate=3e-3, epochs=6, pretrain_learning_rate=3e-3, pretrain_epochs=6, batch_steps=16)
ONE = LearnerSettings(algorithm="mira", value=CRITIC, potential=CRITIC, micro_batch_tokens=256)
TWO = replace(ONE, cross_fit=True)


def tasks_of(half: int, count: int) -> list[str]:
    """Return the names of ``count`` tasks of a half."""
    found = (f"shop.buy-{number}" for number in range(1000))
    return [task for task in found if half_of(task) == half][:count]


def lots(make: Callable[..., Trajectory], tasks: list[str], seed: int) -> list[Trajectory]:
    """Two episodes of each task, on a page of the task's own, whose outcome is thrown by lot: nobody can know it."""
    outcomes = np.random.default_rng(seed).permutation(np.arange(len(tasks)) % 2)
    return [
        replace(
            make([([3, 4, 20 + number], [12, 2])], outcome=float(outcome), episode_id=f"{task}-{attempt}"), task_id=task
        )
        for number, (task, outcome) in enumerate(zip(tasks, outcomes, strict=True))
        for attempt in range(2)
    ]


def test_the_halves_are_about_equal_and_of_the_task_alone() -> None:
    halves = [half_of(f"task-{number}") for number in range(2000)]
    assert 900 < sum(halves) < 1100
    assert halves == [half_of(f"task-{number}") for number in range(2000)]


def test_who_judges_an_episode_did_not_learn_from_its_task(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    """Teaching one half changes the answers to the other half alone; a single critic changes all of them."""
    first, second = (lots(trajectory, tasks_of(half, 8), half) for half in (0, 1))
    for settings, changes in ((TWO, (False, True)), (ONE, (True, True))):
        learner = Learner(settings, model_dir)
        learner.update_critics(first, [], 1)
        for episodes, changed in zip((first, second), changes, strict=True):
            answers = np.concatenate(learner.ask("value", episodes))
            assert bool((answers != 0.5).any()) is changed


def test_outcomes_drawn_by_lot_are_not_known_by_heart(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    episodes = lots(trajectory, tasks_of(0, 8) + tasks_of(1, 8), 5)
    outcomes = np.array([episode.outcome for episode in episodes])

    def share_told(settings: LearnerSettings) -> float:
        learner = Learner(replace(settings, algorithm="webrl"), model_dir)
        for phase in range(1, 5):
            learner.update_critics(episodes, [], phase)
        answers = np.array([float(a[0]) for a in learner.ask("value", episodes)])
        return float(((answers > 0.5) == (outcomes > 0.5)).mean())

    assert share_told(ONE) > 0.9
    assert share_told(TWO) < 0.75


def test_a_phase_with_pairs_is_saved_gone_on_with_and_deterministic(
    model_dir: Path, trajectory: Callable[..., Trajectory], tmp_path: Path
) -> None:
    episodes = lots(trajectory, tasks_of(0, 3) + tasks_of(1, 4), 1)
    learner, again = Learner(TWO, model_dir), Learner(TWO, model_dir)
    learner.pretrain("value", episodes)
    learner.update_critics(episodes, [], 1)
    learner.save(tmp_path / "half-way")
    again.load(tmp_path / "half-way")
    for one in (learner, again):
        one.update_actor(episodes, [], 1)
        one.update_critics(episodes, [], 2)
    for name in ("value", "potential"):
        mine, others = learner.critics[name].models, again.critics[name].models
        assert list(mine) == [name, f"{name}_other"]
        assert all(torch.equal(a, b) for key in mine for a, b in zip(
            mine[key].state_dict().values(), others[key].state_dict().values(), strict=True))  # fmt: skip
    assert not torch.equal(
        *(model.head[0].weight for model in learner.critics["value"].models.values())  # drawn from seeds of their own
    )
    np.testing.assert_array_equal(*(np.concatenate(one.ask("value", episodes)) for one in (learner, again)))


def test_a_final_state_is_judged_by_who_judges_the_episode(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    """Teaching one half's successes changes what is said at the ends of the other half's episodes alone."""
    taught = [
        replace(trajectory([([3, 4], [5, 2])], episode_id=task, final=[3, 9]), task_id=task) for task in tasks_of(0, 4)
    ]
    judged = [replace(episode, task_id=task) for episode, task in zip(taught, tasks_of(1, 4), strict=True)]
    learner = Learner(TWO, model_dir)
    learner.update_critics(taught, [], 1)
    for episodes, changed in ((taught, False), (judged, True)):
        batch = PhaseBatch.of([replace(e, episode_id=str(i)) for i, e in enumerate(episodes)], [], 1)
        answers = predict(list(learner.critics["potential"].models.values()),
                          states(batch.trajectories, final=True), learner.compute)  # fmt: skip
        tasks = [episode.task_id for episode in episodes for _ in range(2)]
        found = learner.critics["potential"].judge(answers, tasks).reshape(4, 2)
        assert all(one[-1] != 0.5 for one in found) is changed
        assert any(one[-1] != 0.5 for one in found) is changed


def test_one_state_of_two_tasks_is_judged_by_two_critics(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    """Nobody played the second task: its first state is asked about by the prompt alone."""
    (taught,), (other,) = tasks_of(0, 1), tasks_of(1, 1)
    episode = replace(trajectory([([3, 4, 20], [12, 2])], outcome=1.0), task_id=taught)
    prompts = [episode.steps[0].prompt_ids] * 3
    for settings, differ in ((TWO, [False, True, False]), (ONE, [False, False, False])):
        learner = Learner(settings, model_dir)
        learner.update_critics([episode], [], 1)
        answers = learner.ask_states("value", prompts, [taught, other, taught])
        assert (answers != answers[0]).tolist() == differ


def test_a_pair_tells_shaped_returns_in_full_as_one_critic_of_its_weights_does(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    """An episode can earn 1 + alpha = 1.4, of which a critic of fresh weights says one half."""
    shaped = replace(TWO, algorithm="mira_milestones", gamma=0.5, alpha=0.4, value_target="shaped")
    one, two = (Learner(settings, model_dir) for settings in (replace(shaped, cross_fit=False), shaped))
    episodes = lots(trajectory, tasks_of(0, 3) + tasks_of(1, 3), 2)
    assert np.concatenate(two.ask("value", episodes)).tolist() == pytest.approx([0.7] * 12)
    one.update_critics(episodes, [], 1)
    (taught,) = one.critics["value"].models.values()
    for model in two.critics["value"].models.values():
        model.load_state_dict(taught.state_dict())
    expected, found = (np.concatenate(learner.ask("value", episodes)) for learner in (one, two))
    np.testing.assert_array_equal(found, expected)
    assert np.ptp(expected) > 0.0


def test_adapters_have_pairs_too(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    adapted = replace(TWO, adapters=replace(TWO.adapters, rank=2))
    learner = Learner(adapted, model_dir)
    episodes = lots(trajectory, tasks_of(0, 4), 3)
    metrics = learner.update_critics(episodes, [], 1)
    assert metrics.critics["value"].states == sum(len(episode.steps) for episode in episodes)
    assert set(np.concatenate(learner.ask("value", episodes)).tolist()) == {0.5}


def test_a_critic_whose_half_nobody_played_begins_with_what_the_other_tells(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    """Failures of tasks of one half alone: who judges them was taught by none, and calls no failure a coin."""
    failed = [replace(episode, outcome=0.0) for episode in lots(trajectory, tasks_of(0, 3), 0)]
    learner = Learner(TWO, model_dir)
    learner.update_critics(failed, [], 1)
    assert max(np.concatenate(learner.ask("value", failed))) == pytest.approx(0.01, abs=0.005)
    other = [replace(episode, outcome=1.0) for episode in lots(trajectory, tasks_of(1, 3), 1)]
    learner.update_critics(other, [], 2)
    assert float(np.mean(np.concatenate(learner.ask("value", failed)))) > 0.3, "and it learns once its half is played"


def test_one_half_without_episodes_teaches_nobody_and_fails_nothing(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    pair = Learner(TWO, model_dir).critics["value"]
    assert isinstance(pair, CriticPair)
    metrics = pair.fit([], np.random.default_rng(0))
    assert (metrics.states, metrics.updates, metrics.loss) == (0, 0, None)


def test_metrics_of_parts_weigh_by_states() -> None:
    few = CriticMetrics(10, 2, 0.5, 1.0, None, {"auc": 0.6})
    many = CriticMetrics(30, 4, 0.1, 2.0, 100.0, {"auc": None})
    assert CriticMetrics.of_parts([few]) is few
    whole = CriticMetrics.of_parts([few, many])
    assert (whole.states, whole.updates, whole.tokens_per_s, whole.ratings) == (40, 6, 100.0, {"auc": 0.6})
    assert whole.loss == pytest.approx(0.2)
    assert whole.grad_norm == pytest.approx(1.75)


def test_a_plan_counts_both() -> None:
    size = size_of_tiny(TinyShape(width=512, layers=8))
    one, two = ({part.name: part.mib for part in learner_memory(s, size, 64)} for s in (ONE, TWO))
    assert two["weights"] / one["weights"] == pytest.approx(5 / 3, rel=0.02)
