"""Make the ``tiny`` policy.

Owns ``prepare_policy`` and the construction of ``tiny``, a Gemma3 decoder small enough to train on two
CPU cores. All its layers attend to the whole prompt and the output embedding is tied to the input's.
Weights are drawn from a seed, so the same seed gives the same model.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig, PreTrainedModel

from policy.induction import give_induction_heads
from policy.models import save_policy
from policy.settings import TinyShape
from policy.tokenizer import TextTokenizer
from policy.tokenizer_training import train_tokenizer


def tiny_config(shape: TinyShape, tokenizer: TextTokenizer) -> Gemma3TextConfig:
    """Return the Gemma3 text configuration of ``shape`` for this tokenizer."""
    head_width = shape.width // shape.heads
    return Gemma3TextConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=shape.width,
        intermediate_size=shape.mlp_width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        head_dim=head_width,
        query_pre_attn_scalar=head_width,
        max_position_embeddings=shape.context_tokens,
        sliding_window=shape.context_tokens,
        layer_types=["full_attention"] * shape.layers,
        initializer_range=shape.initializer_std,
        tie_word_embeddings=True,
        attention_bias=shape.induction_heads,
        bos_token_id=tokenizer.bos_id,
        eos_token_id=list(tokenizer.stop_ids),
        pad_token_id=tokenizer.pad_id,
    )


def build_tiny(shape: TinyShape, tokenizer: TextTokenizer, seed: int) -> PreTrainedModel:
    """Return a fresh fp32 model whose weights depend on ``shape``, the vocabulary size and ``seed`` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Gemma3ForCausalLM(tiny_config(shape, tokenizer))
        if shape.induction_heads:
            give_induction_heads(model)
        return model.eval()


def prepare_policy(shape: TinyShape, directory: str | Path, *, corpus: Iterable[str], seed: int) -> Path:
    """Write an untrained ``tiny`` to ``directory``, weights in fp32.

    Args:
        shape: its sizes.
        directory: where to; must not exist yet.
        corpus: observations, instructions and actions for its tokenizer.
        seed: of its weights.

    Returns:
        The directory, with model and tokenizer.
    """
    with tempfile.TemporaryDirectory() as scratch:
        tokenizer_dir = train_tokenizer(corpus, shape.vocab_size, scratch)
        model = build_tiny(shape, TextTokenizer.load(tokenizer_dir), seed)
        return save_policy(model, tokenizer_dir, directory)
