"""A recipe that no learner could train by is refused when it is built."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.errors import RecipeError
from cluster.recipe.recipe import build_recipe


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"algorithm": "ppo"}, "learner: unknown algorithm 'ppo': choose one of admire_dapo, admire_grpo"),
        ({"reward": "dense"}, "learner: unknown reward 'dense'"),
        ({"advantage": "gae"}, "learner: unknown advantage 'gae'"),
        ({"policy_loss": "ppo"}, "learner: unknown policy_loss 'ppo'"),
        ({"data": "everything"}, "learner: unknown data 'everything'"),
        ({"reference": "none"}, "learner: unknown reference 'none'"),
        ({"algorithm": "sft", "policy_loss": "awr"}, "learner: policy loss 'awr' needs an advantage and a reward"),
        ({"value_target": "mean"}, "learner.value_target must be 'outcome' or 'return' or 'shaped', found 'mean'"),
        ({"precision": "float8"}, "learner.precision must be 'float32' or 'bfloat16', found 'float8'"),
        ({"device": "gpu"}, "learner.device must be 'cpu', 'cuda', 'cuda:N' or 'mps', found 'gpu'"),
        ({"gamma": 1.1}, r"learner.gamma must be in \[0, 1\], found 1.1"),
        ({"lam": -0.1}, r"learner.lam must be in \[0, 1\], found -0.1"),
        ({"alpha": -1.0}, "learner.alpha must be at least 0, found -1.0"),
        ({"threads": 0}, "learner.threads must be at least 1, found 0"),
        ({"micro_batch_tokens": 0}, "learner.micro_batch_tokens must be at least 1, found 0"),
        ({"shuffle": "windows"}, "learner.shuffle must be"),
        ({"seed": -1}, "learner.seed must be at least 0, found -1"),
        ({"clone": {"decay": "staircase"}}, "learner.clone.decay must be 'cosine' or 'linear' or 'constant'"),
        ({"clone": {"updates": -1}}, "learner.clone.updates must be at least 0, found -1"),
        ({"clone": {"time_limit_s": 0.0}}, "learner.clone.time_limit_s must be a time above 0 s, found 0.0"),
        ({"clone": {"prompt_share": 1.5}}, r"learner.clone.prompt_share must be in \[0, 1\], found 1.5"),
        ({"actor": {"learning_rate": -1e-4}}, "learner.actor.learning_rate must be at least 0, found -0.0001"),
        ({"actor": {"epochs": -1}}, "learner.actor.epochs must be at least 0, found -1"),
        ({"actor": {"batch_steps": 0}}, "learner.actor.batch_steps must be at least 1, found 0"),
        ({"actor": {"max_grad_norm": 0.0}}, "learner.actor.max_grad_norm must be above 0, found 0.0"),
        ({"actor": {"probe_steps": -1}}, "learner.actor.probe_steps must be at least 0, found -1"),
        ({"actor": {"beta": 0.0}}, "learner.actor.beta must be above 0, found 0.0"),
        ({"actor": {"log_ratio": "max"}}, "learner.actor.log_ratio must be 'sum' or 'mean', found 'max'"),
        ({"value": {"pretrain_epochs": -1}}, "learner.value.pretrain_epochs must be at least 0, found -1"),
        ({"potential": {"weight_decay": -0.1}}, "learner.potential.weight_decay must be at least 0, found -0.1"),
        ({"potential_data": {"max_steps": 1}}, "learner.potential_data.max_steps must be at least 2, found 1"),
        ({"losses": {"awr": {"max_weight": 0.0}}}, "learner.losses.awr.max_weight must be above 0, found 0.0"),
        ({"algorithm": "filtered_bc", "advantage": "td"}, "'cross_entropy' uses no advantage, found advantage='td'"),
        ({"algorithm": "filtered_bc", "reward": "difference"}, "uses no advantage, found .* reward='difference'"),
        ({"algorithm": "webrl", "shaping_baseline": "step"}, "'outcome' is not shaped, found shaping_baseline='step'"),
        ({"algorithm": "webrl", "better_than_clock": True}, "'outcome' is not shaped, .*better_than_clock=True"),
        ({"value_target": "shaped", "shaping_baseline": "step"}, "learner.shaping_baseline must be 'none' with the"),
        ({"instruction_filter": {"keep": 2.0}}, r"learner.instruction_filter.keep must be in \[0, 1\], found 2.0"),
    ],
)
def test_what_makes_no_sense_is_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        build_recipe({"learner": section})


@pytest.mark.parametrize("algorithm", ["webagent_r1", "outcome_grpo", "admire_grpo", "admire_rloo", "admire_dapo"])
def test_a_group_of_one_is_refused(algorithm: str) -> None:
    with pytest.raises(RecipeError, match=rf"run.attempts_per_task: expected 2 or more.*'{algorithm}'.*found 1"):
        build_recipe({"learner": {"algorithm": algorithm}})
    assert build_recipe({"learner": {"algorithm": algorithm}, "run": {"attempts_per_task": 2}})


def test_a_value_that_may_be_negative_is_not_learned() -> None:
    with pytest.raises(RecipeError, match=r"value_target must be 'outcome' or 'return' with the reward 'pbrs'"):
        build_recipe({"learner": {"reward": "pbrs", "value_target": "shaped"}})


def test_adapters_are_no_critics_to_keep() -> None:
    adapters = {"learner": {"adapters": {"rank": 4}}}
    with pytest.raises(RecipeError, match=r"run.keep_critics: expected false with learner.adapters"):
        build_recipe({**adapters, "run": {"keep_critics": True}})
    assert build_recipe(adapters)


@pytest.mark.parametrize("device", ["cpu", "cuda", "cuda:3", "mps"])
def test_devices_of_torch_are_accepted(device: str) -> None:
    assert build_recipe({"learner": {"device": device}}).learner.device == device
