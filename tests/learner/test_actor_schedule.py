"""How far one phase moves the policy: the learning rate's decay and the KL limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from learner import actor as actor_module
from learner.actor import _moved
from learner.dataset import decisions
from learner.objective import ActorData, Scores
from learner.settings import ActorSettings, CriticSettings, LearnerSettings
from learner.trainer import Learner
from records.episodes import Trajectory

GOOD, BAD = [10, 11, 2], [20, 21, 2]
SETTINGS = LearnerSettings(
    algorithm="webrl",
    value=CriticSettings(learning_rate=0.0),
    actor=ActorSettings(learning_rate=5e-4, epochs=6, batch_steps=8, beta=0.25),
    micro_batch_tokens=256,
)


@pytest.fixture
def episodes(trajectory: Callable[..., Trajectory]) -> list[Trajectory]:
    """Sixteen decisions: two batches an epoch."""
    return [
        trajectory([([3, 4, 30 + i], GOOD if i % 2 else BAD)], outcome=float(i % 2), episode_id=f"e{i}")
        for i in range(16)
    ]


def updates(actor: ActorSettings, model_dir: Path, episodes: list[Trajectory]) -> int:
    learner = Learner(replace(SETTINGS, actor=actor), model_dir)
    learner.update_critics(episodes, [], 1)
    return learner.update_actor(episodes, [], 1).actor.updates


def test_a_phase_ends_after_the_epoch_that_went_too_far(model_dir: Path, episodes: list[Trajectory]) -> None:
    own = SETTINGS.actor
    assert updates(own, model_dir, episodes) == 12
    assert updates(replace(own, kl_limit=1e9), model_dir, episodes) == 12
    assert updates(replace(own, kl_limit=1e-12), model_dir, episodes) == 2
    between = [updates(replace(own, kl_limit=limit), model_dir, episodes) for limit in (1e-3, 1e-2, 1e-1, 1.0)]
    assert between == sorted(between)
    assert all(made % 2 == 0 for made in between)
    assert len(set(between)) > 1


def test_replayed_decisions_alone_end_a_phase_too(model_dir: Path, episodes: list[Trajectory]) -> None:
    """Failures teach nothing, and what is replayed was looked at by nobody: all epochs were made."""
    solved = [replace(episode, outcome=1.0) for episode in episodes]
    failed = [replace(episode, episode_id=f"f{n}", outcome=0.0) for n, episode in enumerate(episodes)]
    actor = replace(SETTINGS.actor, kl_limit=1e-12)
    learner = Learner(replace(SETTINGS, algorithm="filtered_bc_replay", actor=actor), model_dir)
    learner.update_critics(failed, solved, 1)
    assert learner.update_actor(failed, solved, 1).actor.updates == 2


def test_replayed_decisions_do_not_end_a_phase_that_has_decisions_of_its_own(
    model_dir: Path, episodes: list[Trajectory]
) -> None:
    """One half of the decisions is where it was at the start, the other far off: it counts which half is fresh."""
    learner = Learner(SETTINGS, model_dir)
    samples = decisions(episodes)
    now = Scores.under(learner.actor, samples, learner.compute)
    own = replace(SETTINGS.actor, kl_limit=1e-3)
    half = np.arange(16) < 8
    start = Scores(*([score + np.float32(2.0 * far) for score, far in zip(part, ~half, strict=True)]
                     for part in (now.plain, now.sampled)))  # fmt: skip
    for fresh, far in ((half, False), (~half, True), (np.zeros(16, np.bool_), True)):
        data = ActorData(samples, np.arange(16), now.sampled, fresh, np.ones(16))
        assert _moved(learner.actor, data, start, own, learner.compute) is far


@pytest.mark.parametrize(("algorithm", "apart"), [("webrl", True), ("webagent_r1", False)])
def test_the_achieved_ratio_is_to_the_reference_but_for_a_loss_of_tokens(
    model_dir: Path, episodes: list[Trajectory], algorithm: str, apart: bool
) -> None:
    """Nothing is learned, and the warm start is another policy: a loss of tokens has it for a penalty alone."""
    settings = replace(SETTINGS, algorithm=algorithm, reference="warm_start")
    learner = Learner(replace(settings, actor=replace(SETTINGS.actor, learning_rate=0.0)), model_dir)
    assert learner.warm_start is not None
    with torch.no_grad():
        next(learner.warm_start.parameters()).mul_(1.5)
    grouped = [replace(episode, group=str(n // 4)) for n, episode in enumerate(episodes)]
    ratio = learner.update_actor(grouped, [], 1).actor.ratio
    assert ratio is not None
    assert ratio.achieved.count == 16
    assert (max(abs(ratio.achieved.mean), ratio.achieved.std) > 1e-2) is apart
    assert apart or max(abs(ratio.achieved.mean), ratio.achieved.std) < 1e-5


def test_a_policy_that_stays_where_it_is_goes_no_way(model_dir: Path, episodes: list[Trajectory]) -> None:
    assert updates(replace(SETTINGS.actor, learning_rate=0.0, kl_limit=1e-12), model_dir, episodes) == 12


def test_the_rate_falls_to_nothing_over_the_phase(
    model_dir: Path, episodes: list[Trajectory], monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[float] = []
    update = actor_module.update

    def noted(model: Any, optimiser: Any, *given: Any, **named: Any) -> tuple[float, float]:
        rates.append(optimiser.param_groups[0]["lr"])
        return update(model, optimiser, *given, **named)

    monkeypatch.setattr(actor_module, "update", noted)
    updates(replace(SETTINGS.actor, epochs=2, decay="linear"), model_dir, episodes)
    assert rates == pytest.approx([5e-4, 3.75e-4, 2.5e-4, 1.25e-4])
    rates.clear()
    updates(replace(SETTINGS.actor, epochs=1), model_dir, episodes)
    assert rates == [5e-4, 5e-4]


def test_the_divergence_is_estimated_by_hand() -> None:
    """r = 1/2 and r = 2: r - 1 - log r is ln 2 - 1/2 and 1 - ln 2, on average 1/4; nothing sampled is 0."""

    def of(*logs: float) -> Scores:
        score = [np.asarray(logs, np.float32)]
        return Scores(score, score)

    assert of(0.0, 0.0).divergence_of(of(-np.log(2), np.log(2))) == pytest.approx(0.25)
    assert of(-1.0).divergence_of(of(-1.0)) == 0.0
    assert Scores([], []).divergence_of(Scores([], [])) == 0.0


def test_the_estimate_is_the_divergence_of_what_was_sampled() -> None:
    draw = np.random.default_rng(0)
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.5, 0.2, 0.3])
    tokens = draw.choice(3, size=200_000, p=p)
    own, other = (Scores([logs], [logs]) for logs in (np.log(p)[tokens], np.log(q)[tokens]))
    assert own.divergence_of(other) == pytest.approx(float((p * np.log(p / q)).sum()), rel=0.02)


@pytest.mark.parametrize("wrong", [{"decay": "cosine"}, {"kl_limit": 0.0}, {"kl_limit": 0.1, "probe_steps": 0}])
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(reversed(wrong))):
        ActorSettings(**wrong)
