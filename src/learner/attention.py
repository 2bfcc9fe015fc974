"""Attention among samples that lie in one row, for any model that asks transformers for its attention.

Owns ``Segments``, which says what each token of a packed row sees, and the attention function by that name. Invariants:
a token sees its own sample's tokens up to itself and nothing else, within the layer's window where it has one; a head
that samples share is computed once and seen by all of them. What an architecture asks for beyond that is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn
from transformers import AttentionInterface, PreTrainedModel

SEGMENTS = "segments"
"""The name of this attention among those of transformers."""


@dataclass(frozen=True)
class Segments:
    """What the N tokens of a row see, for S samples of which each owns a stretch of the row.

    ``owned[i]`` tokens of the row are the i-th sample's own; they are the last of the ``seen[i]`` tokens that they see.
    ``paths`` (sum of ``seen``,) says where in the row those lie; None where every sample owns all that it sees.
    """

    owned: list[int]
    seen: list[int]
    paths: Tensor | None
    device: torch.device
    masks: dict[tuple[int, int, int], Tensor] = field(default_factory=dict)
    """Masks made so far, by owned and seen tokens and window: all layers use the same."""

    def mask(self, owned: int, seen: int, window: int | None, query: Tensor) -> Tensor | None:
        """Return what is added to the scores of the last ``owned`` of ``seen`` tokens; None if plainly causal.

        (owned, seen) in ``query``'s dtype, since one of truth values would be converted in every layer: 0 where a token
        sees another, minus infinity elsewhere.
        """
        reach = seen if window is None else min(window, seen)
        if owned == seen == reach:
            return None
        key = (owned, seen, reach)
        if key not in self.masks:
            columns = torch.arange(seen, device=self.device)
            behind = columns[seen - owned :, None] - columns[None]
            hidden = (behind < 0) | (behind >= reach)
            self.masks[key] = torch.zeros(hidden.shape, dtype=query.dtype, device=self.device).masked_fill_(
                hidden, -torch.inf
            )
        return self.masks[key]

    @cached_property
    def ends(self) -> tuple[Tensor, Tensor]:
        """Where each sample's own tokens begin, and the last one's end, and the same of those seen: (S + 1,) int32."""
        owned, seen = ([0, *accumulate(counts)] for counts in (self.owned, self.seen))
        return (
            torch.tensor(owned, dtype=torch.int32, device=self.device),
            torch.tensor(seen, dtype=torch.int32, device=self.device),
        )


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    segments: Segments | None = None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """Return the attention's output (1, N, heads, width) for a packed row.

    Args:
        module: the layer that asks.
        query: (1, heads, N, width).
        key: (1, heads of keys and values, N, width).
        value: as ``key``.
        attention_mask: None.
        segments: what each token sees.
        scaling: what scores are multiplied by.
        sliding_window: how many tokens, itself among them, a token sees at most.
        softcap: not known here.
        s_aux: not known here.

    Raises:
        ValueError: the pass came without segments, or the architecture asks for what is not known here.
    """
    if segments is None or attention_mask is not None:
        raise ValueError(f"{type(module).__name__}: expected a packed row with its segments and no attention mask")
    if softcap is not None or s_aux is not None:
        raise ValueError(f"{type(module).__name__}: attention with capped scores or sinks is not known to the learner")
    dtype, device = query.dtype, query.device
    # In half precision a CPU's attention is slower, its gradient by half; a GPU's is the faster one.
    half = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else dtype
    rows = [
        states.squeeze(0).transpose(0, 1).to(torch.float32 if device.type == "cpu" else half)
        for states in (query, key, value)
    ]
    if segments.paths is not None:
        rows[1:] = [states.index_select(0, segments.paths) for states in rows[1:]]
    with torch.autocast(device.type, enabled=False):
        varied = device.type == "cuda" and rows[0].dtype in (torch.bfloat16, torch.float16)
        output = (_at_once if varied else _one_by_one)(rows, segments, scaling, sliding_window)
    return output[None].to(dtype), None


def _one_by_one(rows: list[Tensor], segments: Segments, scaling: float | None, window: int | None) -> Tensor:
    """Return the output (N, heads, width) of queries, keys and values (N, heads, width), segment by segment."""
    pieces = (rows[0].split(segments.owned), rows[1].split(segments.seen), rows[2].split(segments.seen))
    outputs = []
    for q, k, v in zip(*pieces, strict=True):
        mask = segments.mask(len(q), len(k), window, q)
        output = F.scaled_dot_product_attention(
            q.transpose(0, 1)[None], k.transpose(0, 1)[None], v.transpose(0, 1)[None],
            attn_mask=mask, is_causal=mask is None, scale=scaling, enable_gqa=q.shape[1] != k.shape[1],
        )  # fmt: skip
        outputs.append(output.squeeze(0).transpose(0, 1))
    return torch.cat(outputs)


def _at_once(rows: list[Tensor], segments: Segments, scaling: float | None, window: int | None) -> Tensor:
    """Return what ``_one_by_one`` does, by one kernel for segments of any length, which half precision on a GPU has."""
    owned, seen = segments.ends
    output = varlen_attn(
        rows[0], rows[1], rows[2], owned, seen, max(segments.owned), max(segments.seen), scale=scaling,
        window_size=(-1 if window is None else window - 1, 0), enable_gqa=rows[0].shape[1] != rows[1].shape[1],
    )  # fmt: skip
    assert isinstance(output, Tensor)  # with no second result asked for
    return output


def attend_by_segments(model: PreTrainedModel) -> PreTrainedModel:
    """Let ``model`` attend within packed rows, and return it."""
    AttentionInterface.register(SEGMENTS, attend)
    model.set_attn_implementation(SEGMENTS)
    return model
