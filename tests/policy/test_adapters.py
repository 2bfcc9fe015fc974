"""Adapters on models of the families that users bring: as peft reads them, on a server, merged, and refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel

from policy.adapters import Adapter, AdapterShape, attach_adapter, linear_modules, merge_adapter, put_adapter
from policy.engine import GenerationEngine
from policy.engine_loop import EngineLoop
from policy.hub import model_files
from policy.models import load_causal_lm
from policy.published_weights import WeightsRejected
from policy.weights import put_weights, read_weights, write_adapter, write_weights
from tests.model_families import FAMILIES, SEEING, Family, save

PROMPT, ACTION = tuple(range(8, 60)), (9, 10, 11)


@pytest.fixture(scope="module", params=[*FAMILIES.values(), SEEING], ids=lambda family: family.name)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    family: Family = request.param
    return save(family, tmp_path_factory.mktemp("model") / "named")


def drawn(model: PreTrainedModel, *, seed: int = 0, rank: int = 3, layers: int | None = None) -> Adapter:
    shape = AdapterShape(rank, 2.0 * rank, linear_modules(model, layers, ()))
    draw = torch.Generator().manual_seed(seed)
    return Adapter(shape, {n: torch.randn(size, generator=draw) * 0.2 for n, size in shape.sizes(model).items()})


def scores(model: PreTrainedModel) -> list[float]:
    return GenerationEngine(model, ()).score(PROMPT, ACTION)


def test_a_server_that_attaches_it_one_that_merged_it_and_peft_say_the_same(folder: Path, tmp_path: Path) -> None:
    from peft import PeftModel

    plain, attached, merged, base = (load_causal_lm(folder) for _ in range(4))
    adapter = drawn(plain)
    put_adapter(attached, adapter)
    merge_adapter(merged, adapter)
    (tmp_path / "adapter_config.json").write_text(adapter.shape.to_json())
    save_file(dict(adapter.tensors), tmp_path / "adapter_model.safetensors")
    by_peft = PeftModel.from_pretrained(base, str(tmp_path))
    ids = torch.tensor([PROMPT])
    expected = by_peft(input_ids=ids).logits
    torch.testing.assert_close(attached(input_ids=ids).logits, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(merged(input_ids=ids).logits, expected, atol=1e-5, rtol=0)
    assert float((plain(input_ids=ids).logits - expected).detach().abs().max()) > 0.5


def test_adapters_reach_the_decoder_alone_and_as_far_down_as_asked(folder: Path) -> None:
    model = load_causal_lm(folder)
    everything = linear_modules(model, None, ())
    assert len(everything) == 2 * 7
    assert not any("vision" in name or "lm_head" in name for name in everything)
    assert [name for name in everything if "layers.1." in name] == list(linear_modules(model, 1, ()))
    assert {name.rpartition(".")[2] for name in linear_modules(model, None, ("q_proj", "v_proj"))} == {
        "q_proj", "v_proj",
    }  # fmt: skip
    for names in (("w_proj",), ("q_proj", "w_proj")):
        with pytest.raises(ValueError, match=r"no linear layer of w_proj; its layers have .*, q_proj, .*v_proj"):
            linear_modules(model, None, names)
    other = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=16))
    with pytest.raises(ValueError, match="the layers of GPT2LMHeadModel are not known"):
        linear_modules(other, None, ())


def test_an_attached_adapter_adds_nothing_at_first_and_freezes_the_rest(folder: Path) -> None:
    model, plain = load_causal_lm(folder, dtype="bfloat16"), load_causal_lm(folder, dtype="bfloat16")
    own = attach_adapter(model, drawn(plain).shape, "a")
    assert {parameter.dtype for parameter in own.values()} == {torch.float32}
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert len(trained) == len(own) == 2 * 14
    ids = torch.tensor([PROMPT])
    assert torch.equal(model(input_ids=ids).logits, plain(input_ids=ids).logits)


def test_a_running_engine_changes_adapters_and_keeps_the_base(folder: Path, tmp_path: Path) -> None:
    model = load_causal_lm(folder)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    loop = EngineLoop(GenerationEngine(model, ()), version=0, checksum="")
    try:
        for version in (1, 2):
            adapter = drawn(load_causal_lm(folder), seed=version)
            weights = write_adapter(adapter, tmp_path / f"{version}.safetensors", version)
            assert loop.load_weights(weights).result(30) == weights
            expected = load_causal_lm(folder)
            merge_adapter(expected, adapter)
            assert loop.score(PROMPT, ACTION).result(30) == pytest.approx(scores(expected), abs=1e-5)
        other = write_adapter(drawn(load_causal_lm(folder), rank=4), tmp_path / "4.safetensors", 3)
        with pytest.raises(WeightsRejected, match="another shape than the one that is served"):
            loop.load_weights(other)
    finally:
        loop.close()
    after = {name.replace(".base_layer", ""): tensor for name, tensor in model.state_dict().items()}
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())


def test_an_adapter_comes_back_from_its_file_as_it_was_written(folder: Path, tmp_path: Path) -> None:
    adapter = drawn(load_causal_lm(folder))
    weights = write_adapter(adapter, tmp_path / "1.safetensors", 1)
    found = read_weights(weights)
    assert isinstance(found, Adapter)
    assert found.shape == adapter.shape
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in adapter.tensors.items())
    assert write_adapter(adapter, tmp_path / "again.safetensors", 1).checksum == weights.checksum


def test_what_is_no_adapter_of_this_model_changes_nothing(folder: Path, tmp_path: Path) -> None:
    model = load_causal_lm(folder)
    before, adapter = scores(model), drawn(model)
    first = next(iter(adapter.tensors))
    without = {name: tensor for name, tensor in adapter.tensors.items() if name != first}
    for tensors in (without, {**adapter.tensors, first: torch.zeros(9, 9)}):
        with pytest.raises(WeightsRejected, match="missing, unknown or of other shape"):
            put_adapter(model, Adapter(adapter.shape, tensors))
    elsewhere = AdapterShape(3, 6.0, ("model.layers.9.self_attn.q_proj",))
    with pytest.raises(WeightsRejected, match="of another model"):
        put_adapter(model, Adapter(elsewhere, adapter.tensors))
    assert scores(model) == before
    put_adapter(model, adapter)
    whole = write_weights(load_causal_lm(folder).state_dict(), tmp_path / "whole.safetensors", 1)
    with pytest.raises(WeightsRejected, match="do not fit the model"):
        put_weights(model, read_weights(whole))


def test_a_models_folder_cannot_name_another_model_by_an_adapters_settings(folder: Path) -> None:
    (folder / "adapter_config.json").write_text(AdapterShape(1, 1.0, ("a",)).to_json())
    try:
        assert "adapter_config.json" not in {file.name for file in model_files(folder)}
    finally:
        (folder / "adapter_config.json").unlink()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"r": 1}', AdapterShape(1, 1.0, ("a",)).to_json().replace("LORA", "LOHA")]
)
def test_a_shape_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(WeightsRejected, match="an adapter"):
        AdapterShape.from_json(text)
    shape = AdapterShape(2, 4.0, ("a", "b"))
    assert AdapterShape.from_json(shape.to_json()) == shape
    assert replace(shape, rank=3) != shape
