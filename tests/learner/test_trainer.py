"""The learner learns: cloning overfits, MiRA moves probability towards what succeeded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers.modeling_layers import GradientCheckpointingLayer

from cluster.run_folder.played_results import NO_EPISODES
from cluster.run_folder.stage_results import Cloned, read_result
from learner.critic_kinds import CRITICS
from learner.critics import predict
from learner.dataset import states
from learner.phase_batch import PhaseBatch
from learner.settings import ActorSettings, CloneSettings, CriticSettings, LearnerSettings, PotentialDataSettings
from learner.trainer import Learner
from policy.models import load_causal_lm
from policy.weights import put_weights, read_weights
from records.episodes import FinalState, Trajectory
from tests.learner.phases import run_phase

GOOD, BAD = [10, 11, 2], [20, 21, 2]
CRITIC = CriticSettings(learning_rate=3e-3, epochs=2, batch_steps=16, pretrain_learning_rate=3e-3, pretrain_epochs=10)
SETTINGS = LearnerSettings(
    clone=CloneSettings(learning_rate=5e-3, updates=120, batch_steps=8),
    actor=ActorSettings(learning_rate=1e-3, epochs=2, batch_steps=16, beta=0.5),
    value=CRITIC,
    potential=CRITIC,
    micro_batch_tokens=256,
)

UNSURE = replace(CRITIC, learning_rate=0.0, pretrain_learning_rate=1e-7)
"""A value critic that says 0.5 of everything, and stays there, once it was taught a bandit."""


def bandit(make: Callable[..., Trajectory], count: int = 32) -> list[Trajectory]:
    """Two-step episodes on a few pages; the first action GOOD leads to success and BAD to failure."""
    episodes = []
    for i in range(count):
        good = i % 2 == 0
        page = [3, 4, 30 + i % 6]
        following = [3, 5, 30 + i % 6, 40 + good]
        pairs = [(page, GOOD if good else BAD), (following, [12, 2])]
        reached = [0, 2, 4] if good else [0, 0, 0]
        episodes.append(make(pairs, outcome=float(good), episode_id=f"e{i}", reached=reached))
    return episodes


def logprob(learner: Learner, action: list[int], page: int = 30) -> float:
    return float(learner.probe(np.array([3, 4, page]), np.array(action)).sum())


def weights(learner: Learner) -> dict[str, torch.Tensor]:
    modules = {"actor": learner.actor.model, **{name: critic.model for name, critic in learner.critics.items()}}
    return {f"{n}.{k}": v.clone() for n, m in modules.items() for k, v in m.state_dict().items()}


def test_cloning_overfits_a_few_demonstrations(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    demonstrations = [
        trajectory([([3, 4, 30 + i, 7], [10 + i, 50 - i, 2]), ([3, 9, 30 + i], [20 + i, 2])], episode_id=f"d{i}")
        for i in range(5)
    ]
    learner = Learner(SETTINGS, model_dir)
    seen: dict[int, float] = {}
    metrics = learner.clone(demonstrations, on_update=seen.__setitem__)
    assert metrics.updates == 120
    assert list(seen) == list(range(1, 121))
    assert seen[1] > 2.0
    assert metrics.loss is not None
    assert metrics.loss < 0.1
    for scores in learner.score(demonstrations):
        assert np.exp(min(float(step.sum()) for step in scores)) > 0.8


def test_cloning_without_updates_leaves_the_policy_and_has_no_loss(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    learner = Learner(replace(SETTINGS, clone=CloneSettings(updates=0)), model_dir)
    before = weights(learner)
    metrics = learner.clone(bandit(trajectory, 4))
    assert (metrics.loss, metrics.updates) == (None, 0)
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(learner).items())
    result = Cloned(**vars(NO_EPISODES), checkpoint="cloned", metrics=metrics)
    assert read_result(0, "clone", result.to_json()) == result


def test_cloning_is_deterministic_and_stops_at_its_time_limit(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    data = bandit(trajectory)
    short = replace(SETTINGS, clone=replace(SETTINGS.clone, updates=4))
    first, second = Learner(short, model_dir), Learner(short, model_dir)
    losses: dict[Learner, dict[int, float]] = {first: {}, second: {}}
    for learner, of_learner in losses.items():
        assert learner.clone(data, on_update=of_learner.__setitem__).updates == 4
    assert losses[first] == losses[second]
    assert all(torch.equal(a, b) for a, b in zip(weights(first).values(), weights(second).values(), strict=True))
    limited = replace(SETTINGS.clone, updates=10**6, time_limit_s=0.3)
    assert 0 < Learner(replace(SETTINGS, clone=limited), model_dir).clone(data).updates < 1000


def test_critics_start_from_the_cloned_backbone(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    learner = Learner(replace(SETTINGS, clone=replace(SETTINGS.clone, updates=3)), model_dir)
    learner.clone(bandit(trajectory))
    actor = learner.actor.model.base_model.state_dict()
    for name, tensor in learner.critics["value"].model.backbone.state_dict().items():
        assert torch.equal(tensor, actor[name])
    assert set(np.concatenate(learner.ask("value", bandit(trajectory, 2))).tolist()) == {0.5}


BOTH, VALUE = ["value", "potential"], ["value"]
CRITICS_OF = {
    **dict.fromkeys(["mira", "mira_td", "mira_kl"], BOTH),
    **dict.fromkeys(["webrl", "mira_no_pc", "awr", "digirl"], VALUE),
    "filtered_bc": [],
}


@pytest.mark.parametrize(("name", "critics"), CRITICS_OF.items())
def test_every_algorithm_prefers_what_succeeded(
    name: str, critics: list[str], model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    learner = Learner(replace(SETTINGS, algorithm=name), model_dir)
    before = logprob(learner, GOOD) - logprob(learner, BAD)
    metrics = [run_phase(learner, bandit(trajectory), [], phase_index=k) for k in range(4)]
    assert logprob(learner, GOOD) - logprob(learner, BAD) > before + 0.2
    last = metrics[-1]
    assert list(last.critics) == critics
    assert last.update.success_rate == 0.5
    assert last.actor.updates == 2 * -(-last.actor.decisions // 16)
    assert last.actor.grad_norm is not None
    assert last.actor.grad_norm > 0


def test_released_webrl_raises_what_succeeded(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    learner = Learner(replace(SETTINGS, algorithm="webrl_released"), model_dir)
    before = logprob(learner, GOOD)
    for k in range(3):
        run_phase(learner, bandit(trajectory), [], phase_index=k)
    assert logprob(learner, GOOD) > before + 0.2


def test_mira_raises_the_successful_action_and_lowers_the_other(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    learner = Learner(SETTINGS, model_dir)
    data = bandit(trajectory)
    pretrained = learner.pretrain("potential", data)
    assert pretrained.states == 32
    assert pretrained.updates == 20
    good, bad = logprob(learner, GOOD), logprob(learner, BAD)
    for k in range(3):
        metrics = run_phase(learner, data, [], phase_index=k)
    assert logprob(learner, GOOD) > good + 0.1
    assert logprob(learner, BAD) < bad - 0.1
    auc = metrics.critics["value"].ratings["auc"]
    assert auc is not None
    assert auc > 0.6
    assert metrics.critics["potential"].ratings["kendall"] == pytest.approx(1.0)
    assert metrics.actor.shaping is not None
    assert metrics.actor.shaping.p95 > 0.0
    ratio = metrics.actor.ratio
    assert ratio is not None
    assert ratio.slope is not None
    assert ratio.slope > 0
    assert metrics.update.to_dict()["actor"]["ratio"]["asked"]["count"] == 64


def test_a_negative_advantage_lowers_the_log_probability(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    """One failed episode alone, where V says 0.5: A = 0 - V < 0, and one update must lower the action."""
    learner = Learner(
        replace(SETTINGS, algorithm="webrl", value=UNSURE, actor=replace(SETTINGS.actor, epochs=1)), model_dir
    )
    learner.pretrain("value", bandit(trajectory))
    before = logprob(learner, BAD)
    metrics = run_phase(learner, [trajectory([([3, 4, 30], BAD)], outcome=0.0)], [], phase_index=0)
    assert metrics.actor.negative_share == 1.0
    # A = 0.5 * (0 - 0.5) + 0.5 * (0 - 0.5) = -0.5.
    assert metrics.actor.advantage is not None
    assert metrics.actor.advantage.mean == pytest.approx(-0.5, rel=1e-3)
    assert logprob(learner, BAD) < before


def test_enough_epochs_reach_what_the_advantage_asks_for(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    """One failed step, A = -0.5, beta 0.5: the optimum is a log-ratio of A / beta = -1 (eq. 9)."""
    actor = replace(SETTINGS.actor, epochs=60)
    learner = Learner(replace(SETTINGS, algorithm="webrl", value=UNSURE, actor=actor), model_dir)
    learner.pretrain("value", bandit(trajectory))
    metrics = run_phase(learner, [trajectory([([3, 4, 30], BAD)], outcome=0.0)], [], phase_index=0)
    ratio = metrics.actor.ratio
    assert ratio is not None
    assert ratio.asked.mean == pytest.approx(-1.0, rel=1e-3)
    assert ratio.achieved.mean == pytest.approx(-1.0, abs=0.1)


def test_a_loss_may_compare_with_the_warm_start(
    model_dir: Path, tmp_path: Path, trajectory: Callable[..., Trajectory]
) -> None:
    """A phase that raised the action leaves V = 0.5, A = 0 of an unsolved pair: only the reference pulls.

    Against the phase's start there is nothing to undo; against the warm start the log-ratio goes back towards 0.
    """
    raised = [trajectory([([3, 4, 30], GOOD)], episode_id="won")]
    still = [trajectory([([3, 4, 30], GOOD)], outcome=outcome, episode_id=f"{outcome}") for outcome in (0.0, 1.0)]
    settings = replace(SETTINGS, algorithm="webrl", value=UNSURE, actor=replace(SETTINGS.actor, epochs=20))
    left = {}
    for reference in ("phase_start", "warm_start"):
        learner = Learner(replace(settings, reference=reference), model_dir)
        learner.pretrain("value", bandit(trajectory))
        start = logprob(learner, GOOD)
        run_phase(learner, raised, [], phase_index=1)
        assert logprob(learner, GOOD) > start + 0.5
        learner.save(tmp_path / reference)
        resumed = Learner(replace(settings, reference=reference), learner.export(tmp_path / f"policy-{reference}"))
        resumed.load(tmp_path / reference)
        run_phase(resumed, still, [], phase_index=2)
        left[reference] = logprob(resumed, GOOD) - start
    assert left["phase_start"] > 0.5
    assert abs(left["warm_start"]) < 0.2


def test_the_warm_start_is_the_policy_after_cloning(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    learner = Learner(replace(SETTINGS, reference="warm_start"), model_dir)
    learner.clone(bandit(trajectory))
    assert learner.warm_start is not None
    cloned = {name: tensor.clone() for name, tensor in learner.actor.model.state_dict().items()}
    run_phase(learner, bandit(trajectory), [], phase_index=1)
    assert all(torch.equal(tensor, cloned[name]) for name, tensor in learner.warm_start.model.state_dict().items())
    assert not all(torch.equal(tensor, cloned[name]) for name, tensor in learner.actor.model.state_dict().items())
    assert Learner(SETTINGS, model_dir).warm_start is None


@pytest.mark.parametrize("cross_fit", [False, True])
def test_a_critic_begins_with_the_mean_of_what_it_is_taught_first(
    model_dir: Path, trajectory: Callable[..., Trajectory], cross_fit: bool
) -> None:
    """Untaught it says 0.5, and actions of a hard phase, however good, would all be below what it says."""
    still = replace(CRITIC, learning_rate=0.0, pretrain_learning_rate=1e-7)
    learner = Learner(replace(SETTINGS, value=still, algorithm="webrl", cross_fit=cross_fit), model_dir)
    rare = [trajectory([([3, 4], GOOD)], outcome=float(i % 8 == 0), episode_id=f"e{i}") for i in range(64)]
    rare = [replace(episode, task_id=f"t{i // 8}") for i, episode in enumerate(rare)]
    assert np.allclose(np.concatenate(learner.ask("value", rare)), 0.5)
    learner.pretrain("value", rare)
    assert np.allclose(np.concatenate(learner.ask("value", rare)), 1 / 8, atol=1e-3)
    learner.update_critics([replace(episode, outcome=1.0) for episode in rare], [], 1)
    assert np.allclose(np.concatenate(learner.ask("value", rare)), 1 / 8, atol=1e-3)


def test_a_phase_may_be_limited_to_fewer_whole_episodes(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    """Of 32 episodes of two steps the critics learn from 10 and 5, the actor from 7; which ones differs by phase."""
    settings = replace(
        SETTINGS,
        value=replace(CRITIC, max_states=21),
        potential=replace(CRITIC, max_states=10),
        potential_data=PotentialDataSettings(labels="all"),
        actor=replace(SETTINGS.actor, max_decisions=15, epochs=1),
    )
    learner = Learner(settings, model_dir)
    assert learner.pretrain("value", bandit(trajectory)).states == 64
    update = run_phase(learner, bandit(trajectory), [], 1)
    assert {name: critic.states for name, critic in update.critics.items()} == {"value": 20, "potential": 10}
    assert update.actor.decisions == 14
    batch = PhaseBatch.of(bandit(trajectory), (), 1)
    drawn = [learner._actor_data(batch, np.random.default_rng(seed))[0].episodes.tolist() for seed in (0, 1)]
    assert drawn[0] != drawn[1]
    assert all(episodes.count(episode) == 2 for episodes in drawn for episode in episodes)
    cloning = Learner(replace(settings, algorithm="filtered_bc"), model_dir)
    data = cloning._actor_data(batch, np.random.default_rng(0))[0]
    assert len(data.samples) == 14
    assert (data.outcomes == 1.0).all()


@pytest.mark.parametrize("algorithm", ["mira", "filtered_bc"])
def test_a_phase_draws_by_its_number_and_the_runs_seed(
    model_dir: Path, trajectory: Callable[..., Trajectory], algorithm: str
) -> None:
    """Critics and actor are shuffled alike in a phase that runs again, and otherwise in another or by another seed."""

    def trained(phase: int, seed: int) -> dict[str, torch.Tensor]:
        learner = Learner(replace(SETTINGS, algorithm=algorithm), model_dir)
        learner.update_critics(bandit(trajectory), [], phase, seed)
        learner.update_actor(bandit(trajectory), [], phase, seed)
        return weights(learner)

    first, again, *others = (trained(phase, seed) for phase, seed in ((1, 5), (1, 5), (2, 5), (1, 6)))
    assert all(torch.equal(first[name], again[name]) for name in first)
    for model in {name.partition(".")[0] for name in first}:
        learned = [name for name in first if name.startswith(f"{model}.") and name.endswith("q_proj.weight")]
        assert learned
        assert not any(torch.equal(first[name], other[name]) for name in learned for other in others)


def test_what_has_no_verdict_never_enters(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    data = bandit(trajectory)
    crashed = [trajectory([([3, 4, 30], BAD)], outcome=None, episode_id=f"x{i}") for i in range(3)]
    with_crashes, without = Learner(SETTINGS, model_dir), Learner(SETTINGS, model_dir)
    metrics = run_phase(with_crashes, data + crashed, data[:2], phase_index=0)
    run_phase(without, data, [], phase_index=0)
    assert (metrics.update.rollouts, metrics.update.replayed, metrics.update.left_out) == (32, 0, 5)
    assert all(
        torch.equal(a, b) for a, b in zip(weights(with_crashes).values(), weights(without).values(), strict=True)
    )


def test_the_value_can_learn_discounted_returns(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    """Three-step successes, gamma 0.5: the targets are 0.25, 0.5, 1, and V at each step follows them.

    Against the outcome V would be 1 everywhere, and A_0 = G_0 - V = 0.25 - 1 < 0 for actions that succeeded.
    """
    pairs = [([3, 30], [10, 2]), ([3, 31], [11, 2]), ([3, 32], [12, 2])]
    data = [trajectory(pairs, episode_id=f"e{i}") for i in range(8)]
    value = replace(CRITIC, pretrain_epochs=60)
    shares = {}
    for target, expected in {"return": [0.25, 0.5, 1.0], "outcome": [1.0, 1.0, 1.0]}.items():
        settings = replace(SETTINGS, algorithm="mira_no_pc", gamma=0.5, value=value, value_target=target)
        learner = Learner(settings, model_dir)
        learner.pretrain("value", data)
        np.testing.assert_allclose(learner.ask("value", data)[0], expected, atol=0.1)
        shares[target] = run_phase(learner, data, [], phase_index=0).actor.negative_share_of_successes
    assert shares["outcome"] == pytest.approx(2 / 3)
    # WebRL's advantage is undiscounted, and so is what its V learns; so is that of its released code.
    for undiscounted in ({"algorithm": "webrl"}, {"algorithm": "webrl_released"}, {"advantage": "value_difference"}):
        settings = LearnerSettings(gamma=0.5, value_target="return", **undiscounted)
        assert CRITICS["value"].targets(data[:1], settings).tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="value_target"):
        Learner(replace(SETTINGS, value_target="mean"), model_dir)


def milestones_done(make: Callable[..., Trajectory], reached: list[int], **more: object) -> Trajectory:
    pairs = [([3, 30 + t], [10 + t, 2]) for t in range(3)]
    return make(pairs, reached=reached, milestone_count=2, **more)


@pytest.mark.parametrize(
    ("episode", "returns"),
    [
        ({"reached": [0, 0, 1, 2]}, [0.35, 0.7, 1.0]),  # rewards 0, 0.4 / 2, 1
        ({"reached": [0, 0, 1, 2], "final": [3, 9]}, [0.4, 0.8, 1.2]),  # the last one reaches a milestone too
        ({"reached": [0, 0, 1, 1], "outcome": 0.0}, [0.1, 0.2, 0.0]),
        ({"reached": [0, 0, 0, 0], "outcome": 0.0}, [0.0, 0.0, 0.0]),
    ],
)
def test_the_value_can_learn_returns_of_the_shaped_reward(
    trajectory: Callable[..., Trajectory], episode: dict[str, Any], returns: list[float]
) -> None:
    """gamma 0.5 and alpha 0.4; as shares of the most that an episode can earn."""
    settings = LearnerSettings(algorithm="mira_milestones", gamma=0.5, alpha=0.4, value_target="shaped")
    value = CRITICS["value"]
    targets = value.targets([milestones_done(trajectory, **episode)], settings)
    assert value.scale(settings) == 1.4
    np.testing.assert_allclose(targets * 1.4, returns, atol=1e-6)


def test_values_of_shaped_returns_are_told_in_full(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    """And the advantages of an episode that did what all do are 0, where V of the outcome's return leaves what is paid.

    One that reaches nothing has negative ones.
    """
    usual = [milestones_done(trajectory, [0, 0, 1, 1], outcome=0.0, episode_id=f"e{i}") for i in range(8)]
    missed = milestones_done(trajectory, [0, 0, 0, 0], outcome=0.0, episode_id="missed")
    base = replace(
        SETTINGS, algorithm="mira_milestones", gamma=0.5, alpha=0.4, value=replace(CRITIC, pretrain_epochs=80)
    )
    for cross_fit in (False, True):
        learner = Learner(replace(base, value_target="shaped", cross_fit=cross_fit), model_dir)
        learner.pretrain("value", [replace(one, task_id=f"t{i}") for i, one in enumerate(usual)])
        np.testing.assert_allclose(learner.ask("value", usual)[0], [0.1, 0.2, 0.0], atol=0.03)
    means = {}
    for target in ("shaped", "return"):
        learner = Learner(replace(base, value_target=target), model_dir)
        learner.pretrain("value", usual)
        batch = learner._batch([*usual, missed], [], 1)
        advantages = learner._actor_data(batch, np.random.default_rng(0))[0].advantages.steps
        means[target] = (advantages[:24].mean(), advantages[24:26].mean())
    assert abs(means["shaped"][0]) < 0.02 < 0.05 < means["return"][0]
    assert means["shaped"][1] < -0.05 < -0.02 < means["return"][1]


@pytest.mark.parametrize("algorithm", ["webrl", "mira_no_pc", "awr", "mira"])
def test_where_nothing_is_shaped_the_target_is_the_outcomes_return(
    trajectory: Callable[..., Trajectory], algorithm: str
) -> None:
    data = [milestones_done(trajectory, [0, 1, 1, 2])]
    plain, shaped = (
        CRITICS["value"].targets(data, LearnerSettings(algorithm=algorithm, value_target=target)).tolist()
        for target in ("return", "shaped")
    )
    assert (plain == shaped) is (algorithm != "mira")


def test_bfloat16_arithmetic_stays_close(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    exact = Learner(SETTINGS, model_dir)
    rough = Learner(replace(SETTINGS, precision="bfloat16"), model_dir)
    assert 0 < abs(logprob(exact, GOOD) - logprob(rough, GOOD)) < 0.3
    assert run_phase(rough, bandit(trajectory), [], phase_index=0).actor.updates == 8
    assert {parameter.dtype for parameter in rough.actor.parameters()} == {torch.float32}
    with pytest.raises(ValueError, match="precision must be"):
        logprob(Learner(replace(SETTINGS, precision="float8"), model_dir), GOOD)


def test_replay_joins_and_can_be_restricted_to_steps(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    data = bandit(trajectory)
    old = [replace(episode, episode_id=f"old{i}") for i, episode in enumerate(data[:8:2])]
    learner = Learner(SETTINGS, model_dir)
    assert run_phase(learner, data, old, phase_index=0).actor.decisions == 64 + 8
    restricted = run_phase(learner, data, old, phase_index=1, replayed_steps={"old0": [1], "old1": []})
    assert restricted.actor.decisions == 64 + 1 + 0 + 4
    assert restricted.critics["value"].states == 72


def test_a_phase_without_any_verdict_changes_nothing(model_dir: Path) -> None:
    learner = Learner(SETTINGS, model_dir)
    before = weights(learner)
    metrics = run_phase(learner, [], [], phase_index=0)
    assert metrics.actor.updates == 0
    assert metrics.update.success_rate is None
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(learner).items())


def test_published_weights_are_the_actors(model_dir: Path, tmp_path: Path) -> None:
    learner = Learner(SETTINGS, model_dir)
    with torch.no_grad():
        next(learner.actor.parameters()).add_(0.5)
    manifest = learner.publish(tmp_path / "weights", 3)
    server = load_causal_lm(model_dir)
    put_weights(server, read_weights(manifest))
    assert manifest.version == 3
    assert all(torch.equal(a, b) for a, b in zip(server.parameters(), learner.actor.parameters(), strict=True))


def test_an_exported_policy_loads_as_the_same_policy(model_dir: Path, tmp_path: Path) -> None:
    learner = Learner(SETTINGS, model_dir)
    with torch.no_grad():
        next(learner.actor.parameters()).mul_(1.5)
    again = Learner(SETTINGS, learner.export(tmp_path / "policy"))
    assert logprob(again, GOOD) == logprob(learner, GOOD)


def test_sft_has_no_phases(model_dir: Path) -> None:
    with pytest.raises(ValueError, match="ends with cloning"):
        run_phase(Learner(replace(SETTINGS, algorithm="sft"), model_dir), [], [], phase_index=0)


def test_cloning_can_learn_to_predict_prompts_too(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    prompt = (1, 9, 30, 8, 40)
    demonstrations = [trajectory([(prompt, (7, 2))], episode_id="d0")]

    def prompt_gain(weight: float) -> float:
        learner = Learner(
            replace(SETTINGS, clone=CloneSettings(5e-3, 30, batch_steps=2, prompt_weight=weight)), model_dir
        )
        ask = (np.asarray(prompt[:2], dtype=np.int32), np.asarray(prompt[2:], dtype=np.int32))
        before = learner.probe(*ask).sum()
        learner.clone(demonstrations)
        return float(learner.probe(*ask).sum() - before)

    assert prompt_gain(1.0) > prompt_gain(0.0) + 1.0


def test_recomputing_reaches_the_critics_and_changes_no_number(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    plain, again = (Learner(replace(SETTINGS, recompute=chosen), model_dir) for chosen in (False, True))
    for learner, expected in ((plain, 0), (again, 1)):
        for module in (learner.actor, *(critic.model for critic in learner.critics.values())):
            layers = [layer for layer in module.modules() if isinstance(layer, GradientCheckpointingLayer)]
            assert [layer.training for layer in layers] == [bool(expected)] * len(layers) != []
    first, second = (run_phase(learner, bandit(trajectory), [], phase_index=1) for learner in (plain, again))
    assert second.actor.loss == pytest.approx(first.actor.loss, rel=1e-5)
    assert second.critics["value"].loss == pytest.approx(first.critics["value"].loss, rel=1e-5)


def test_a_batch_of_whole_episodes_teaches_the_same(model_dir: Path, trajectory: Callable[..., Trajectory]) -> None:
    """With one batch for all there is nothing to draw: rows that share heads give the numbers of rows that do not."""
    still = replace(SETTINGS.value, epochs=0)
    actor = replace(SETTINGS.actor, batch_steps=10_000, epochs=1)
    everything = replace(SETTINGS, actor=actor, value=still, potential=still, shuffle="episodes")
    alone = replace(everything, shuffle="steps", micro_batch_tokens=1)
    first, second = (
        run_phase(Learner(s, model_dir), bandit(trajectory), [], phase_index=1) for s in (everything, alone)
    )
    assert first.actor.grad_norm == pytest.approx(second.actor.grad_norm, rel=1e-4)


def test_a_phase_learns_from_the_states_after_last_actions(
    model_dir: Path, trajectory: Callable[..., Trajectory]
) -> None:
    """The potential critic learns them; its answer there shapes the last action. The value critic is as ever."""
    without = bandit(trajectory, 16)
    ended = [replace(t, final_state=FinalState("", "", np.array([3, 6, 50 + i % 6], np.int32)))
             for i, t in enumerate(without)]  # fmt: skip
    settings = replace(SETTINGS, actor=replace(SETTINGS.actor, epochs=0))
    learners = [Learner(settings, model_dir), Learner(settings, model_dir)]
    plain, known = (run_phase(learner, data, [], 1) for learner, data in zip(learners, (without, ended), strict=True))
    assert [phase.critics["value"].states for phase in (plain, known)] == [32, 32]
    assert [phase.critics["potential"].states for phase in (plain, known)] == [16, 24], "of the 8 successes"
    np.testing.assert_array_equal(*(np.concatenate(learner.ask("value", without)) for learner in learners))

    potential = learners[1].critics["potential"].models["potential"]
    answers = predict([potential], states(ended, final=True), learners[1].compute)[0].reshape(16, 3).astype(np.float64)
    # Per episode alpha (P(s_1) - P(s_0)) and alpha (P(s_2) - P(s_1)); without final states the second is 0.
    assert known.actor.shaping is not None
    expected = settings.alpha * np.diff(answers, axis=1)
    assert known.actor.shaping.mean == pytest.approx(expected.mean(), abs=1e-6)
    assert known.actor.shaping.std == pytest.approx(expected.std(), abs=1e-6)
    before = 0.5 * settings.alpha * np.mean([p[1] - p[0] for p in learners[0].ask("potential", without)])
    assert plain.actor.shaping is not None
    assert plain.actor.shaping.mean == pytest.approx(before, abs=1e-6)
    assert plain.update.mechanism is not None
    assert known.update.mechanism is not None
    assert (plain.update.mechanism.final_states, known.update.mechanism.final_states) == (0.0, 1.0)


@pytest.mark.parametrize("algorithm", ["webrl", "mira_milestones", "mira_clock"])
def test_without_a_potential_critic_no_critic_sees_a_final_state(
    model_dir: Path, trajectory: Callable[..., Trajectory], monkeypatch: pytest.MonkeyPatch, algorithm: str
) -> None:
    asked: list[int] = []

    def counted(critics: Any, samples: Any, compute: Any) -> Any:
        asked.append(len(samples))
        return predict(critics, samples, compute)

    monkeypatch.setattr("learner.trainer.predict", counted)
    ended = [replace(t, final_state=FinalState("", "", np.array([3, 6], np.int32))) for t in bandit(trajectory, 4)]
    run_phase(Learner(replace(SETTINGS, algorithm=algorithm), model_dir), ended, [], 1)
    assert asked == [8]
