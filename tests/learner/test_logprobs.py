"""Log-probabilities of prompts and actions against the model's own, one position at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from learner import logprobs
from learner.batching import Batch, Sample, collate
from learner.language_model import LanguageModel, compute_again
from learner.logprobs import action_and_prompt_logprobs, action_logprobs, both_temperatures, tempered_logprobs
from policy.models import load_causal_lm
from tests.model_families import FAMILIES, Family, save


def test_prompt_and_action_add_up_to_the_whole_sequence(model_dir: Path) -> None:
    model = load_causal_lm(model_dir)
    samples = [
        Sample(np.asarray([1, 9, 30, 8], dtype=np.int32), np.asarray([7, 2], dtype=np.int32)),
        Sample(np.asarray([1, 5], dtype=np.int32), np.asarray([11, 12, 2], dtype=np.int32)),
    ]
    packed = LanguageModel(load_causal_lm(model_dir))
    batch = collate(samples, torch.device("cpu"))
    with torch.no_grad():
        actions, prompts = packed(action_and_prompt_logprobs, batch)
        assert torch.allclose(actions, packed(action_logprobs, batch), atol=1e-6)
        for i, sample in enumerate(samples):
            ids = torch.tensor([[*sample.prompt_ids, *sample.action_ids]], dtype=torch.long)
            scores = torch.log_softmax(model(input_ids=ids).logits[0, :-1], dim=-1)
            every = scores.gather(1, ids[0, 1:, None]).squeeze(1)
            cut = len(sample.prompt_ids) - 1
            assert torch.allclose(prompts[i], every[:cut].sum(), atol=1e-5)
            assert torch.allclose(actions[i], every[cut:].sum(), atol=1e-5)


@pytest.mark.parametrize("read", [action_logprobs, tempered_logprobs, both_temperatures])
def test_chunks_of_logits_change_neither_numbers_nor_gradients(
    model_dir: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[PreTrainedModel, Batch], Tensor]
) -> None:
    ids = np.arange(3, 40, dtype=np.int32)
    samples = [Sample(ids[:9], ids[9:16], 0.7), Sample(ids[:7], ids[20:31], 1.3)]

    def numbers() -> list[Tensor]:
        model = LanguageModel(load_causal_lm(model_dir))
        found = model(read, collate(samples, torch.device("cpu")))
        found.square().sum().backward()
        return [found.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]

    whole = numbers()
    heads: list[int] = []
    vocabulary = int(load_causal_lm(model_dir).get_output_embeddings().weight.shape[0])
    monkeypatch.setattr(logprobs, "LOGITS_AT_ONCE", 4 * vocabulary)
    monkeypatch.setattr(torch, "log_softmax", counting(torch.log_softmax, heads))
    for expected, found in zip(whole, numbers(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert max(heads) <= 4 < sum(heads)


def counting(function: Callable[..., Tensor], rows: list[int]) -> Callable[..., Tensor]:
    def counted(logits: Tensor, dim: int) -> Tensor:
        rows.append(len(logits))
        return function(logits, dim=dim)

    return counted


@pytest.mark.parametrize("family", list(FAMILIES.values()), ids=lambda family: family.name)
def test_computing_activations_again_gives_the_same_gradient_and_keeps_less(family: Family, tmp_path: Path) -> None:
    """The model stays in evaluation mode, where transformers' own switch alone does nothing."""
    folder = save(family, tmp_path / "model")
    ids = (np.arange(400, dtype=np.int32) * 7) % 97 + 3
    batch = collate([Sample(ids[:300], ids[300:310])], torch.device("cpu"))

    def run(again: bool) -> tuple[list[Tensor], int]:
        model = LanguageModel(load_causal_lm(folder))
        if again:
            compute_again(model.model)
        assert not any(module.training for module in model.modules() if not list(module.children()))
        kept: dict[int, int] = {}
        own = {parameter.data_ptr() for parameter in model.parameters()}

        def keep(tensor: Tensor) -> Tensor:
            if tensor.data_ptr() not in own:
                kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = model(action_logprobs, batch).sum()
        loss.backward()
        return [p.grad for p in model.parameters() if p.grad is not None], sum(kept.values())

    (plain, all_kept), (again, few_kept) = run(again=False), run(again=True)
    for expected, found in zip(plain, again, strict=True):
        torch.testing.assert_close(found, expected)
    assert few_kept < all_kept / 2


def test_logits_are_in_float32_under_any_precision(model_dir: Path) -> None:
    """From the last norm on: with the layers given, bfloat16 says what float32 says."""
    model = LanguageModel(load_causal_lm(model_dir)).model
    states = torch.randn(5, model.config.hidden_size, generator=torch.Generator().manual_seed(0))

    def logits() -> Tensor:
        return logprobs._logits(model.get_output_embeddings(), model.base_model.norm(states))

    expected = logits()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(logits(), expected)
        assert model.base_model.layers[0].input_layernorm(states).dtype == torch.bfloat16
