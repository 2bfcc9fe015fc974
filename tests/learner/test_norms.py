"""Norms in few passes give what the architectures' own give, forward and backward, and only where they do."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from learner.norms import RmsNorm, replace_norms
from policy.models import load_causal_lm
from tests.model_families import FAMILIES, Family, save


def norm_of(kind: type[nn.Module], width: int = 24) -> nn.Module:
    norm = kind(width, eps=1e-3)
    nn.init.normal_(norm.weight, generator=torch.Generator().manual_seed(2))  # type: ignore[arg-type]
    return norm


def run(norm: nn.Module, dtype: torch.dtype) -> list[Tensor]:
    states = (5 * torch.randn(2, 7, 24, generator=torch.Generator().manual_seed(0)) + 1).to(dtype).requires_grad_()
    out = norm(states)
    (out.float() * torch.randn(out.shape, generator=torch.Generator().manual_seed(1))).sum().backward()
    assert states.grad is not None
    weight = norm.weight.grad
    assert isinstance(weight, Tensor)
    return [out, states.grad, weight]


@pytest.mark.parametrize("kind", [Gemma3RMSNorm, LlamaRMSNorm])
@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_values_and_gradients_are_the_architectures_own(kind: type[nn.Module], dtype: torch.dtype, near: float) -> None:
    holder = nn.ModuleList([norm_of(kind)])
    own = copy.deepcopy(holder[0])
    assert replace_norms(holder) == 1
    assert isinstance(holder[0], RmsNorm)
    for found, expected in zip(run(holder[0], dtype), run(own, dtype), strict=True):
        assert found.dtype == expected.dtype
        torch.testing.assert_close(found, expected, rtol=near, atol=near)


def test_a_frozen_norm_has_no_gradient_and_passes_one_on() -> None:
    holder = nn.ModuleList([norm_of(LlamaRMSNorm)])
    replace_norms(holder)
    holder[0].requires_grad_(False)
    states = torch.randn(3, 24, requires_grad=True)
    holder[0](states).sum().backward()
    assert holder[0].weight.grad is None
    assert states.grad is not None


class OtherRMSNorm(LlamaRMSNorm):  # type: ignore[misc]
    """One whose values are not those of any form known."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        normed: Tensor = super().forward(hidden_states) + 0.1
        return normed


def test_what_is_not_known_stays() -> None:
    holder = nn.ModuleList([OtherRMSNorm(8), nn.LayerNorm(8), nn.Linear(8, 8)])
    assert replace_norms(holder) == 0
    assert type(holder[0]) is OtherRMSNorm


@pytest.mark.parametrize("family", list(FAMILIES.values()), ids=lambda family: family.name)
def test_every_familys_norms_are_known_and_its_tensors_keep_their_names(family: Family, tmp_path: Path) -> None:
    model = load_causal_lm(save(family, tmp_path / "model"))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    norms = [module for module in model.modules() if type(module).__name__.endswith("RMSNorm")]
    assert replace_norms(model) == len(norms) > 0
    after = model.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
