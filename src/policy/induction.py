"""Induction heads that the ``tiny`` policy begins with: what stood after the same tokens before.

Owns which numbers they are made of. A web agent copies: the words of a name from the task, and the number behind that
name on the page. Attention learns this late from nothing: in 500 updates on chains a model without these heads hardly
copies, and one with them does (docs/decisions/0182). Its first layer begins with heads that look 0, 1, 2 and 3 tokens
back and put what stands there into parts of the hidden state of their own. Its second layer begins with heads that
compare these parts: two find where the last tokens stood before and say what came next, two find where what stands
before the last token stood before. All of it is trained like any other weight.

Source: Olsson et al. 2022, "In-context Learning and Induction Heads". Random numbers come from torch's generator.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import Tensor
from transformers import Gemma3ForCausalLM
from transformers.models.gemma3.modeling_gemma3 import Gemma3Attention, Gemma3DecoderLayer

_FAST = 3
"""Pairs of a head's numbers, the fastest turned ones, that tell how far back a token is; two come round after 44."""
_SLOW_TURN = 0.008
"""Radians a token by which pairs are turned at most that are to compare tokens: a tenth of a turn over a page."""
_COMPARISONS = (((0, 1), (1, 2)), ((0,), (1,)), ((1, 2), (1, 2)), ((1, 2, 3), (1, 2, 3)))
"""For each head of the second layer, how far back from here and from there the tokens stand that it compares."""
_BACK = len(_COMPARISONS)
_QUIET = 0.1
"""Factor of the random part of queries and keys, so that it does not drown what they begin with."""
_FIRST_MLP, _SECOND_MLP = -0.9, -0.7
"""Weights of the norms behind the feed-forward parts (which count as 1 more), for the same reason."""
_SHARP_PLACES, _SHARP_TOKENS = 1.5, 1.0
"""Weights of the norms of queries and keys in the first and the second layer: six and four times the scores."""


@torch.no_grad()
def give_induction_heads(model: Gemma3ForCausalLM) -> None:
    """Change the weights of the first two layers in place.

    The model has biases in its attention, at least two layers, and four heads with keys of their own
    (``policy.settings.TinyShape`` refuses others).
    """
    first, second = (cast(Gemma3DecoderLayer, layer) for layer in model.model.layers[:2])
    width, head_width = model.config.hidden_size, model.config.head_dim
    turns = cast(Tensor, model.model.rotary_emb.full_attention_inv_freq).tolist()
    into_code = _directions(width)[:head_width]
    parts = _directions(width)[: _BACK * head_width].split(head_width)
    _look_back(first.self_attn, turns, into_code, parts)
    first.post_feedforward_layernorm.weight.fill_(_FIRST_MLP)
    _compare(second.self_attn, turns, into_code, parts)
    second.post_feedforward_layernorm.weight.fill_(_SECOND_MLP)


def _directions(width: int) -> Tensor:
    """Return (width, width) directions at right angles, drawn at random, one a row."""
    turned, _ = torch.linalg.qr(torch.randn(width, width))
    return turned.T.contiguous()


def _look_back(attention: Gemma3Attention, turns: list[float], into_code: Tensor, parts: tuple[Tensor, ...]) -> None:
    """Let head h look h tokens back and write that token's code into part h of the hidden state."""
    half, head_width = len(turns), len(into_code)
    for back, part in enumerate(parts):
        head = slice(back * head_width, (back + 1) * head_width)
        attention.q_proj.weight[head] *= _QUIET
        attention.k_proj.weight[head] *= _QUIET
        attention.v_proj.weight[head] = into_code
        attention.o_proj.weight[:, head] = part.T
        for pair in range(_FAST):
            # Both are turned by their places: their product is largest where these differ by ``back``.
            attention.q_proj.bias[head.start + pair] = math.cos(turns[pair] * back)
            attention.q_proj.bias[head.start + pair + half] = -math.sin(turns[pair] * back)
            attention.k_proj.bias[head.start + pair] = 1.0
    for norm in (attention.q_norm, attention.k_norm):
        norm.weight[:_FAST] = norm.weight[half : half + _FAST] = _SHARP_PLACES


def _compare(attention: Gemma3Attention, turns: list[float], into_code: Tensor, parts: tuple[Tensor, ...]) -> None:
    """Let each head attend to where the tokens that it compares are the same, and say the token that stands there."""
    half, head_width = len(turns), len(into_code)
    slow = [place for pair in range(half) if turns[pair] < _SLOW_TURN for place in (pair, pair + half)]
    for number, (here, there) in enumerate(_COMPARISONS):
        head = slice(number * head_width, (number + 1) * head_width)
        attention.q_proj.weight[head] *= _QUIET
        attention.k_proj.weight[head] *= _QUIET
        each = len(slow) // len(here)
        for i, (near, far) in enumerate(zip(here, there, strict=True)):
            places = [head.start + place for place in slow[i * each : (i + 1) * each]]
            attention.q_proj.weight[places] = parts[near][:each]
            attention.k_proj.weight[places] = parts[far][:each]
        attention.v_proj.weight[head] = parts[0]
        attention.o_proj.weight[:, head] = into_code.T
    for norm in (attention.q_norm, attention.k_norm):
        norm.weight.fill_(_SHARP_TOKENS)
