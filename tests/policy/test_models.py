"""The tiny preset and the policy directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from cluster.run_folder.named_model import copy_model
from policy.models import load_causal_lm, save_policy
from policy.presets import build_tiny, prepare_policy
from policy.settings import PolicySettings, TinyShape
from policy.tokenizer import TextTokenizer
from tests.model_families import SEEING, save


def test_the_tiny_preset_has_the_promised_size(tokenizer: TextTokenizer) -> None:
    model = build_tiny(TinyShape(), tokenizer, seed=0)
    assert 0.65e6 < model.num_parameters() < 1.3e6
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


def test_weights_depend_on_the_seed_alone_and_leave_the_global_generator_alone(tokenizer: TextTokenizer) -> None:
    before = torch.get_rng_state()
    first, again, other = (build_tiny(TinyShape(), tokenizer, seed=s).state_dict() for s in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(first[k], again[k]) for k in first)
    assert not torch.equal(first["model.embed_tokens.weight"], other["model.embed_tokens.weight"])


def test_a_saved_policy_loads_with_its_tokenizer(tokenizer: TextTokenizer, tokenizer_dir: Path, tmp_path: Path) -> None:
    model = build_tiny(TinyShape(layers=1), tokenizer, seed=0)
    path = save_policy(model, tokenizer_dir, tmp_path / "policy")
    assert sorted(p.suffix for p in path.iterdir() if p.stat().st_size > 10_000) == [".json", ".safetensors"]
    loaded = load_causal_lm(path)
    assert TextTokenizer.load(path).stop_ids == tokenizer.stop_ids
    ids = torch.tensor([tokenizer.encode("link Home 0")])
    with torch.inference_mode():
        torch.testing.assert_close(loaded(ids).logits, model(ids).logits)
    assert load_causal_lm(path, dtype="bfloat16").dtype == torch.bfloat16


def test_a_saved_policy_has_what_prepares_all_inputs_of_its_model(tmp_path: Path) -> None:
    model = save(SEEING, tmp_path / "model")
    processor = {"image_processor_type": "Gemma3ImageProcessor", "processor_class": "Gemma3Processor"}
    (model / "preprocessor_config.json").write_text(json.dumps(processor))
    (model / "processor_config.json").write_text(json.dumps({"processor_class": "Gemma3Processor"}))
    loaded = load_causal_lm(model)
    not_its = ("model.safetensors.index.json", "adapter_config.json", "params.json", "checksums.json")
    for name in not_its:
        (model / name).write_text('{"of": "another"}')
    path = save_policy(loaded, model, tmp_path / "policy")
    for name in ("preprocessor_config.json", "processor_config.json", "tokenizer.json", "tokenizer_config.json"):
        assert (path / name).read_bytes() == (model / name).read_bytes()
    assert not {*not_its} & {file.name for file in path.iterdir()}


def test_a_policy_never_replaces_another(tokenizer: TextTokenizer, tokenizer_dir: Path, tmp_path: Path) -> None:
    model = build_tiny(TinyShape(layers=1), tokenizer, seed=0)
    path = save_policy(model, tokenizer_dir, tmp_path / "policy")
    written = (path / "model.safetensors").read_bytes()
    with pytest.raises(OSError, match=r"not empty|exists"):
        save_policy(build_tiny(TinyShape(layers=1), tokenizer, seed=1), tokenizer_dir, path)
    assert (path / "model.safetensors").read_bytes() == written
    assert [p.name for p in tmp_path.iterdir()] == ["policy"]


def test_pickled_weights_are_refused(tokenizer: TextTokenizer, tokenizer_dir: Path, tmp_path: Path) -> None:
    model = build_tiny(TinyShape(layers=1), tokenizer, seed=0)
    path = save_policy(model, tokenizer_dir, tmp_path / "policy")
    (path / "model.safetensors").unlink()
    torch.save(model.state_dict(), path / "pytorch_model.bin")
    with pytest.raises(OSError, match="safetensors"):
        load_causal_lm(path)


def test_an_unknown_precision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dtype must be one of"):
        load_causal_lm(tmp_path, dtype="float8")


def test_a_run_can_start_from_nothing_or_from_a_model(corpus: list[str], tmp_path: Path) -> None:
    shape = TinyShape(width=32, layers=1, heads=2, key_value_heads=2, mlp_width=32, vocab_size=700)
    fresh = prepare_policy(shape, tmp_path / "fresh", corpus=corpus, seed=3)
    again = prepare_policy(shape, tmp_path / "again", corpus=corpus, seed=3)
    taken = tmp_path / "taken"
    copy_model(PolicySettings(model=str(fresh)), {}, taken)
    assert TextTokenizer.load(fresh).vocab_size == load_causal_lm(fresh).config.vocab_size <= 700
    weights = {path.name: (path / "model.safetensors").read_bytes() for path in (fresh, again, taken)}
    assert weights["fresh"] == weights["again"] == weights["taken"]
    assert TextTokenizer.load(fresh).digest == TextTokenizer.load(taken).digest


def test_transformers_reads_the_same_tokenizer(policy_dir: Path, tokenizer: TextTokenizer, page: str) -> None:
    other = AutoTokenizer.from_pretrained(policy_dir)
    ids = tokenizer.encode(page)
    assert other.encode(page, add_special_tokens=False) == ids
    assert other.decode(ids) == page
    assert (other.eos_token_id, other.bos_token_id) == (tokenizer.stop_ids[0], tokenizer.bos_id)
