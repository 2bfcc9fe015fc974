"""Tiny random models of the families that users bring: their architectures, control tokens and shapes of dialogue.

The templates are written here, after what each family's own template does: where its system prompt is, what it trims,
how a turn begins and ends. Tokenizers split text as the families' do and are trained on a few lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (
    Gemma3Config,
    Gemma3ForCausalLM,
    Gemma3ForConditionalGeneration,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

LINES = [
    "Task: Buy the Red desk lamp", "Page:", "@ Lamps", "link Home 0", "searchbox Search 1", "(an earlier page)", "user",
    'do(action="Click", element="42")', "# Element: Add to cart", "! nothing moved", "go_backward()", "assistant",
]  # fmt: skip
_LETTERS, _SIGNS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
)

LLAMA_TEMPLATE = """{{- bos_token }}
{%- if messages[0].role == 'system' %}
    {%- set system, messages = messages[0].content | trim, messages[1:] %}
{%- else %}
    {%- set system = '' %}
{%- endif %}
{%- if strftime_now is defined %}
    {%- set today = strftime_now('%d %b %Y') %}
{%- else %}
    {%- set today = '26 Jul 2024' %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\nToday: ' + today + '\\n\\n' + system + '<|eot_id|>' }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' + message.content | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
QWEN_TEMPLATE = """{%- if messages[0]['role'] != 'system' %}
    {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' + message.content.split('</think>')[-1].lstrip('\\n') + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""
GEMMA_TEMPLATE = """{{ bos_token }}
{%- for message in messages -%}
    {%- if message['role'] == 'system' -%}
        {{ raise_exception('System role not supported') }}
    {%- endif -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception('Conversation roles must alternate') }}
    {%- endif -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\\n' }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {{ item['text'] | trim }}
        {%- endfor -%}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{ '<start_of_turn>model\\n' }}
{%- endif -%}
"""


@dataclass(frozen=True)
class Family:
    """One family: how to make its model and tokenizer, and how its dialogue and its settings are written."""

    name: str
    end_of_turn: str
    stops: tuple[str, ...]
    template: str
    settings: dict[str, Any]
    tokenizer: Callable[[], Tokenizer]
    model: Callable[[dict[str, Any]], PreTrainedModel]


def save(family: Family, folder: Path) -> Path:
    """Write a model of the family to ``folder`` in the form of the hub; the same one every time."""
    bare = save_tokenizer(family, folder)
    begin = family.settings.get("bos_token")
    common = {
        "vocab_size": bare.get_vocab_size() + 3,  # heads are wider than vocabularies
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "bos_token_id": bare.token_to_id(begin) if begin else None,
        "eos_token_id": [bare.token_to_id(stop) for stop in family.stops],
        "pad_token_id": bare.token_to_id(family.settings["pad_token"]),
        "initializer_range": 0.1,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        family.model(common).eval().save_pretrained(folder)
    return folder


def save_tokenizer(family: Family, folder: Path) -> Tokenizer:
    """Write the family's tokenizer with its settings, chat template among them, to ``folder``."""
    bare = family.tokenizer()
    folder.mkdir(parents=True, exist_ok=True)
    bare.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": family.template, **family.settings}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return bare


def _byte_level(digits: str, controls: Sequence[str], plain: Sequence[str] = ()) -> Tokenizer:
    bare = Tokenizer(models.BPE())
    words = pre_tokenizers.Split(Regex("|".join([_LETTERS, digits, _SIGNS])), "isolated")
    bare.pre_tokenizer = pre_tokenizers.Sequence(
        [words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    bare.decoder = decoders.ByteLevel()
    text = ["\n".join(LINES), "\n\n".join(LINES)] * 4
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bare.train_from_iterator(text, trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False))
    bare.add_special_tokens([AddedToken(control, special=True) for control in controls])
    bare.add_tokens([AddedToken(token, special=False, normalized=False) for token in plain])
    return bare


def _llama_tokenizer() -> Tokenizer:
    controls = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>",
                "<|eot_id|>", "<|finetune_right_pad_id|>"]  # fmt: skip
    return _byte_level(r"\p{N}{1,3}", controls)


def _qwen_tokenizer() -> Tokenizer:
    bare = _byte_level(r"\p{N}", ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], ["<think>", "</think>"])
    bare.normalizer = normalizers.NFC()
    return bare


def _gemma_tokenizer() -> Tokenizer:
    """Pieces of lines with spaces as letters, bytes for everything else; runs of breaks and spaces are added tokens."""
    spaces = normalizers.Replace(" ", "▁")
    learned = Tokenizer(models.BPE())
    learned.normalizer = spaces
    learned.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    learned.train_from_iterator(LINES * 4, trainers.BpeTrainer(vocab_size=200, show_progress=False))
    content = json.loads(learned.to_str())["model"]
    controls = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    pieces = [*controls, "\n", *[f"<0x{byte:02X}>" for byte in range(256)], *content["vocab"]]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    merges = [tuple(merge) for merge in content["merges"]]
    bare = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    bare.normalizer = spaces
    bare.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    bare.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    bare.add_special_tokens([AddedToken(control, special=True) for control in controls])
    blanks = ["\n", "\n\n", "\n\n\n", "▁▁", "▁▁▁"]
    bare.add_tokens([AddedToken(blank, special=False, normalized=False) for blank in blanks])
    return bare


def _llama(common: dict[str, Any]) -> PreTrainedModel:
    return LlamaForCausalLM(LlamaConfig(**common, tie_word_embeddings=False))


def _qwen(common: dict[str, Any]) -> PreTrainedModel:
    return Qwen2ForCausalLM(Qwen2Config(**common, tie_word_embeddings=True))


_GEMMA: dict[str, Any] = {
    "head_dim": 8,
    "query_pre_attn_scalar": 8,
    "sliding_window": 32,
    "layer_types": ["sliding_attention", "full_attention"],
    "tie_word_embeddings": True,
}


def _gemma(common: dict[str, Any]) -> PreTrainedModel:
    return Gemma3ForCausalLM(Gemma3TextConfig(**common, **_GEMMA))


def _gemma_with_images(common: dict[str, Any]) -> PreTrainedModel:
    """As the larger ones of the family are published: a text model inside one that sees."""
    seeing = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
              "image_size": 28, "patch_size": 14}  # fmt: skip
    config = Gemma3Config(text_config={**common, **_GEMMA}, vision_config=seeing, mm_tokens_per_image=1)
    return Gemma3ForConditionalGeneration(config)


def _qwen_of_experts(common: dict[str, Any]) -> PreTrainedModel:
    """As the larger ones of the family are published: each expert of a layer has tensors of its own in their files."""
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    return Qwen3MoeForCausalLM(Qwen3MoeConfig(**common, **experts, head_dim=32, tie_word_embeddings=False))


_TEXT_MODELS = (
    Family(
        "llama",
        "<|eot_id|>",
        ("<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"),
        LLAMA_TEMPLATE,
        {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "pad_token": "<|finetune_right_pad_id|>"},
        _llama_tokenizer,
        _llama,
    ),
    Family(
        "qwen",
        "<|im_end|>",
        ("<|endoftext|>",),  # as in its base models, which do not name the end of a turn
        QWEN_TEMPLATE,
        {"bos_token": None, "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>", "add_bos_token": False},
        _qwen_tokenizer,
        _qwen,
    ),
    Family(
        "gemma",
        "<end_of_turn>",
        ("<eos>", "<end_of_turn>"),
        GEMMA_TEMPLATE,
        {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>"},
        _gemma_tokenizer,
        _gemma,
    ),
)
FAMILIES = {family.name: family for family in _TEXT_MODELS}
SEEING = replace(FAMILIES["gemma"], name="gemma with images", model=_gemma_with_images)
EXPERTS = replace(FAMILIES["qwen"], name="qwen of experts", model=_qwen_of_experts)
