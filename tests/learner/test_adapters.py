"""Adapters on one backbone: whose turn it is, what stays untouched, and what is run once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from learner.adapters import Adapted, SharedBackbone
from learner.settings import AdapterSettings
from policy.models import load_causal_lm
from tests.model_families import FAMILIES, SEEING, Family, save

IDS = torch.arange(8, 40)[None]


@pytest.fixture(scope="module", params=[*FAMILIES.values(), SEEING], ids=lambda family: family.name)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    family: Family = request.param
    return save(family, tmp_path_factory.mktemp("model") / "named")


def shared(folder: Path, *, layers: int | None = None, dtype: str = "float32") -> SharedBackbone:
    settings = AdapterSettings(rank=4, alpha=8.0, layers=layers)
    return SharedBackbone(load_causal_lm(folder, dtype=dtype), settings, seed=0)


def critic(backbone: SharedBackbone, name: str, like: str | None = None) -> Adapted:
    return Adapted(backbone, name, backbone.states, like)


def states(model: Adapted, ids: Tensor = IDS) -> Tensor:
    found: Tensor = model(input_ids=ids, use_cache=False).last_hidden_state
    return found


def train(model: Adapted, updates: int = 3) -> None:
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(updates):
        optimiser.zero_grad()
        states(model).float().square().mean().backward()
        optimiser.step()


def test_training_one_adapter_leaves_the_backbone_and_the_others_as_they_are(folder: Path) -> None:
    backbone = shared(folder, dtype="bfloat16")
    actor, value = critic(backbone, "actor"), critic(backbone, "value")
    frozen = {n: t.clone() for n, t in backbone.model.state_dict().items() if "lora_" not in n}
    of_actor = {n: t.clone() for n, t in actor.state_dict().items()}
    before = states(actor).clone()
    train(value)
    assert all(torch.equal(tensor, of_actor[name]) for name, tensor in actor.state_dict().items())
    assert torch.equal(states(actor), before)
    of_value = {n: t.clone() for n, t in value.state_dict().items()}
    train(actor)
    assert all(torch.equal(tensor, of_value[name]) for name, tensor in value.state_dict().items())
    assert not any(torch.equal(tensor, of_actor[name]) for name, tensor in actor.state_dict().items())
    assert all(torch.equal(backbone.model.state_dict()[name], tensor) for name, tensor in frozen.items())


def test_a_pass_runs_with_its_own_adapter_whoever_ran_before(folder: Path) -> None:
    backbone = shared(folder)
    actor, value = critic(backbone, "actor"), critic(backbone, "value")
    train(value)
    alone = shared(folder)
    expected = critic(alone, "value")
    expected.load_state_dict(value.state_dict())
    for _ in range(2):
        states(actor)
        torch.testing.assert_close(states(value), states(expected))
        assert not torch.allclose(states(actor), states(value))
    value.zero_grad()
    states(actor).sum().backward()
    assert all(parameter.grad is None for parameter in value.parameters())
    assert all(parameter.requires_grad for parameter in [*actor.parameters(), *value.parameters()])


def test_an_adapter_like_another_says_what_that_says(folder: Path) -> None:
    backbone = shared(folder)
    actor = critic(backbone, "actor")
    train(actor)
    value = critic(backbone, "value", like="actor")
    assert torch.equal(states(value), states(actor))
    train(actor)
    assert not torch.allclose(states(value), states(actor))
    assert torch.equal(states(critic(backbone, "value", like="actor")), states(actor)), "and again, made anew"


def test_a_models_parameters_are_its_adapters_alone(folder: Path) -> None:
    backbone = shared(folder)
    actor = critic(backbone, "actor")
    assert len(list(actor.parameters())) == 2 * len(backbone.shape.modules)
    assert set(actor.state_dict()) == set(backbone.content("actor").tensors)
    assert {parameter.dtype for parameter in actor.parameters()} == {torch.float32}


def test_layers_below_the_adapters_take_no_gradient_and_run_once_for_a_batch(folder: Path) -> None:
    backbone = shared(folder, layers=1)
    value, potential = critic(backbone, "value"), critic(backbone, "potential")
    train(value)
    lowest, runs = backbone.model.get_decoder().layers[0], []
    lowest.self_attn.register_forward_hook(lambda *_: runs.append(1))
    batch = IDS.clone()
    first, second = states(value, batch), states(potential, batch)
    assert len(runs) == 1
    torch.testing.assert_close(first, states(value, batch.clone()))
    torch.testing.assert_close(second, states(potential, batch.clone()))
    assert len(runs) == 3
    assert not torch.allclose(first, second)
    second.sum().backward()
    assert all(parameter.grad is not None for parameter in potential.parameters())
    assert {name.split("layers.")[1][0] for name in value.state_dict()} == {"1"}
