"""The tiny policy's induction heads: where they look before anything is trained, and that they are sized and saved."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import Gemma3ForCausalLM

from policy.model_size import size_in_folder, size_of_tiny
from policy.models import load_causal_lm, save_policy
from policy.presets import build_tiny
from policy.settings import TinyShape
from policy.tokenizer import TextTokenizer

WITH, WITHOUT = TinyShape(induction_heads=True), TinyShape()
_LENGTH, _AT = 120, 40
"""Tokens of a text without a repetition, and the place in it that is read a second time behind it."""


def _attention(shape: TinyShape, tokenizer: TextTokenizer, seed: int, repeated: int) -> tuple[torch.Tensor, ...]:
    """Return each layer's attention (heads, tokens, tokens) over a text with its tokens ``_AT``… again at the end."""
    model = build_tiny(shape, tokenizer, seed=seed)
    model.set_attn_implementation("eager")
    draw = torch.Generator().manual_seed(seed)
    text = torch.randperm(tokenizer.vocab_size, generator=draw)[:_LENGTH]
    ids = torch.cat([text, text[_AT : _AT + repeated]])[None]
    with torch.inference_mode():
        return tuple(layer[0] for layer in model(ids, output_attentions=True).attentions)


@pytest.mark.parametrize("back", [0, 1, 2, 3])
def test_the_first_layer_looks_back_so_many_tokens(tokenizer: TextTokenizer, back: int) -> None:
    seen = _attention(WITH, tokenizer, 0, 3)[0][back]
    assert seen[torch.arange(3, 100), torch.arange(3 - back, 100 - back)].min() > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_the_second_layer_finds_what_came_next(tokenizer: TextTokenizer, seed: int) -> None:
    repeated = 3
    seen = _attention(WITH, tokenizer, seed, repeated)[1][:2, -1]
    assert seen.argmax(-1).tolist() == [_AT + repeated] * 2
    plain = _attention(WITHOUT, tokenizer, seed, repeated)[1][:2, -1]
    assert plain[:, _AT + repeated].max() < 0.05 < 0.3 < seen[:, _AT + repeated].min()


@pytest.mark.parametrize("seed", range(3))
def test_the_second_layer_finds_where_what_stands_before_stood_before(tokenizer: TextTokenizer, seed: int) -> None:
    """The token itself may be another: so a number is found behind a name that something else follows in the prompt."""
    model = build_tiny(WITH, tokenizer, seed=seed)
    model.set_attn_implementation("eager")
    text = torch.randperm(tokenizer.vocab_size, generator=torch.Generator().manual_seed(seed))[: _LENGTH + 1]
    ids = torch.cat([text[:_LENGTH], text[_AT : _AT + 3], text[_LENGTH:]])[None]
    with torch.inference_mode():
        seen = model(ids, output_attentions=True).attentions[1][0, 2:, -1]
    before = seen[:, :-1]
    assert before.argmax(-1).tolist() == [_AT + 3] * 2


def test_a_text_is_continued_as_before_without_any_training(tokenizer: TextTokenizer) -> None:
    def rank(shape: TinyShape) -> float:
        ranks = []
        for seed in range(5):
            model = build_tiny(shape, tokenizer, seed=seed)
            text = torch.randperm(tokenizer.vocab_size, generator=torch.Generator().manual_seed(seed))[:_LENGTH]
            with torch.inference_mode():
                logits = model(torch.cat([text, text[_AT : _AT + 3]])[None]).logits[0, -1]
            ranks.append(float((logits > logits[text[_AT + 3]]).float().mean()))
        return sum(ranks) / len(ranks)

    assert rank(WITH) < 0.05 < 0.2 < rank(WITHOUT)


def test_they_depend_on_the_seed_alone(tokenizer: TextTokenizer) -> None:
    first, again, other = (build_tiny(WITH, tokenizer, seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    name = "model.layers.1.self_attn.q_proj.weight"
    assert not torch.equal(first[name], other[name])


def test_a_model_without_them_is_what_it_was(tokenizer: TextTokenizer) -> None:
    assert not any("bias" in name for name in build_tiny(WITHOUT, tokenizer, seed=0).state_dict())


def test_a_saved_one_has_the_size_that_a_plan_counts(
    tokenizer: TextTokenizer, tokenizer_dir: Path, tmp_path: Path
) -> None:
    shape = TinyShape(induction_heads=True, vocab_size=tokenizer.vocab_size)
    model = build_tiny(shape, tokenizer, seed=0)
    folder = save_policy(model, tokenizer_dir, tmp_path / "policy")
    assert size_in_folder(folder) == size_of_tiny(shape)
    loaded = load_causal_lm(folder)
    assert isinstance(loaded, Gemma3ForCausalLM)
    ids = torch.tensor([tokenizer.encode("link Home 0")])
    with torch.inference_mode():
        torch.testing.assert_close(loaded(ids).logits, model(ids).logits)


@pytest.mark.parametrize(
    "shape", [{"layers": 1}, {"heads": 2, "key_value_heads": 2}, {"key_value_heads": 2}, {"width": 48}]
)
def test_a_model_without_room_for_them_is_refused(shape: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"induction_heads must be two layers, four heads"):
        TinyShape(induction_heads=True, **shape)
