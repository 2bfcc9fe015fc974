"""What the plan counts is what torch holds: parameters of every family, and what a forward pass keeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from learner.batching import Sample, collate
from learner.critics import Critic
from learner.memory import learner_memory
from learner.settings import LearnerSettings
from policy.model_size import size_in_folder
from policy.models import load_causal_lm
from tests.model_families import FAMILIES, SEEING, Family, save

ALL = [*FAMILIES.values(), SEEING]


def counted(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("family", ALL, ids=lambda family: family.name)
def test_a_models_and_its_critics_parameters_are_those_that_torch_counts(family: Family, tmp_path: Path) -> None:
    folder = save(family, tmp_path / "model")
    size, actor = size_in_folder(folder), load_causal_lm(folder)
    assert size.parameters == counted(actor)
    assert size.critic_parameters == counted(Critic.from_actor(actor, seed=0))
    text = actor.config.get_text_config()
    head_width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    assert (size.vocabulary, size.width, size.layers) == (text.vocab_size, text.hidden_size, text.num_hidden_layers)
    assert size.keys_values == 2 * text.num_hidden_layers * text.num_key_value_heads * head_width
    assert size.mlp == text.num_hidden_layers * text.intermediate_size


@pytest.mark.parametrize("family", list(FAMILIES.values()), ids=lambda family: family.name)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_activations_counted_are_those_kept_for_the_backward_pass(
    family: Family, precision: str, tmp_path: Path
) -> None:
    folder = save(family, tmp_path / "model")
    actor, tokens = load_causal_lm(folder), 20_480
    samples = [Sample(np.arange(256, dtype=np.int32), np.zeros(1, dtype=np.int32)) for _ in range(tokens // 256)]
    batch = collate(samples, 0, torch.device("cpu"))
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if tensor.numel() >= tokens:  # no weights, and no positions
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    half = torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bfloat16")
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), half:
        actor.base_model(input_ids=batch.input_ids, use_cache=False)
    settings = LearnerSettings(micro_batch_tokens=tokens, precision=precision)
    parts = {part.name: part.mib for part in learner_memory(settings, size_in_folder(folder), longest=1)}
    assert 0.95 < parts["activations"] / (sum(kept.values()) / 2**20) < 1.25
