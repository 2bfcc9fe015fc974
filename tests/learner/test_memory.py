"""What the plan counts is what torch holds: parameters of every family, and what a forward pass keeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from learner.batching import Batch, Sample, collate
from learner.critics import Critic
from learner.language_model import LanguageModel, compute_again, hidden_states
from learner.memory import learner_memory
from learner.models import AdaptedModels
from learner.ranks import ALONE
from learner.settings import AdapterSettings, LearnerSettings
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
    assert size.critic_parameters == counted(Critic.from_actor(LanguageModel(actor), seed=0))
    text = actor.config.get_text_config()
    head_width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    assert (size.vocabulary, size.width, size.layers) == (text.vocab_size, text.hidden_size, text.num_hidden_layers)
    assert size.keys_values == 2 * text.num_hidden_layers * text.num_key_value_heads * head_width
    assert size.mlp == text.num_hidden_layers * text.intermediate_size


@pytest.mark.parametrize("family", list(FAMILIES.values()), ids=lambda family: family.name)
@pytest.mark.parametrize(
    ("precision", "recompute"), [("float32", False), ("bfloat16", False), ("float32", True), ("bfloat16", True)]
)
def test_the_activations_counted_are_those_kept_for_the_backward_pass(
    family: Family, precision: str, recompute: bool, tmp_path: Path
) -> None:
    folder = save(family, tmp_path / "model")
    tokens, half = 20_480, precision == "bfloat16"
    ids = np.random.default_rng(0).integers(0, 90, (tokens // 256, 256), dtype=np.int32)
    ids[:, 0] = np.arange(tokens // 256)  # no two have a head in common
    batch = collate([Sample(prompt, np.zeros(1, dtype=np.int32)) for prompt in ids], torch.device("cpu"))
    expected = kept_mib(LanguageModel(load_causal_lm(folder)), batch, half)
    size = size_in_folder(folder)
    if recompute:  # of all layers but one, only what goes in is there
        actor = LanguageModel(load_causal_lm(folder))
        compute_again(actor.model)
        expected = expected / size.layers + kept_mib(actor, batch, half)
    settings = LearnerSettings(micro_batch_tokens=tokens, precision=precision, recompute=recompute)
    parts = {part.name: part.mib for part in learner_memory(settings, size, longest=1)}
    # What a norm keeps for each vector beside it, one number, is not counted; of vectors of 8 it is a good deal.
    assert 0.92 < parts["activations"] / expected < 1.25


def kept_mib(actor: LanguageModel, batch: Batch, half: bool) -> float:
    """What a forward pass keeps for the backward pass, weights and positions aside."""
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.nbytes() >= batch.input_ids.numel():
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    autocast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=half)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), autocast:
        hidden_states(actor.model.base_model, batch)
    return sum(kept.values()) / 2**20


@pytest.mark.parametrize("family", ALL, ids=lambda family: family.name)
@pytest.mark.parametrize(("modules", "layers"), [((), None), (("q_proj", "down_proj"), None), (("v_proj",), 1)])
def test_an_adapters_parameters_are_those_that_torch_counts(
    family: Family, modules: tuple[str, ...], layers: int | None, tmp_path: Path
) -> None:
    folder = save(family, tmp_path / "model")
    settings = LearnerSettings(adapters=AdapterSettings(rank=3, modules=modules, layers=layers))
    models = AdaptedModels(settings, folder, ALONE)
    size = size_in_folder(folder)
    counted_here = size.adapter_parameters(3, modules, layers or size.layers)
    assert counted_here == counted(models.actor)
    assert counted_here + size.critic_head == counted(models.critic("value", seed=0))
    parts = {part.name: part for part in learner_memory(settings, size, longest=1)}
    frozen = [p for name, p in models.actor.model.named_parameters() if "lora_" not in name]
    assert parts["backbone"].mib == -(-2 * sum(p.numel() for p in frozen) // 2**20)


@pytest.mark.parametrize("family", list(FAMILIES.values()), ids=lambda family: family.name)
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("layers", [None, 1])
def test_the_activations_of_adapters_are_those_kept_for_the_backward_pass(
    family: Family, recompute: bool, layers: int | None, tmp_path: Path
) -> None:
    folder, tokens = save(family, tmp_path / "model"), 20_480
    settings = LearnerSettings(
        adapters=AdapterSettings(rank=2, layers=layers), precision="bfloat16", micro_batch_tokens=tokens,
        recompute=recompute,
    )  # fmt: skip
    samples = [Sample(np.arange(256, dtype=np.int32) + i, np.zeros(1, dtype=np.int32)) for i in range(tokens // 256)]
    batch = collate(samples, torch.device("cpu"))
    kept = kept_mib(AdaptedModels(settings, folder, ALONE).actor, batch, half=True)
    parts = {part.name: part.mib for part in learner_memory(settings, size_in_folder(folder), longest=1)}
    assert kept < 1.05 * parts["activations"]
    assert recompute or kept > 0.7 * parts["activations"]
