"""Attention among samples that lie in one row, for any model that asks transformers for its attention.

Owns ``Segments``, which says what each token of a packed row sees, and the attention function by that name. Invariants:
a token sees its own sample's tokens up to itself and nothing else, within the layer's window where it has one; a head
that samples share is computed once and seen by all of them. What an architecture asks for beyond that is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

SEGMENTS = "segments"
"""The name of this attention among those of transformers."""


@dataclass(frozen=True, slots=True)
class Segments:
    """What the N tokens of a row see, for S samples of which each owns a stretch of the row.

    ``owned[i]`` tokens of the row are the i-th sample's own; they are the last of the ``seen[i]`` tokens that they see.
    ``paths`` (sum of ``seen``,) says where in the row those lie; None where every sample owns all that it sees.
    """

    owned: list[int]
    seen: list[int]
    paths: Tensor | None
    masks: dict[tuple[int, int, int | None], Tensor] = field(default_factory=dict)
    """Masks made so far, by owned and seen tokens and window: all layers use the same."""

    def mask(self, owned: int, seen: int, window: int | None, device: torch.device) -> Tensor | None:
        """Return which of ``seen`` tokens each of the last ``owned`` sees (owned, seen); None if plainly causal."""
        if window is not None and window >= seen:
            window = None
        if owned == seen and window is None:
            return None
        key = (owned, seen, window)
        if key not in self.masks:
            columns = torch.arange(seen, device=device)
            behind = columns[seen - owned :, None] - columns[None]
            self.masks[key] = (behind >= 0) if window is None else (behind >= 0) & (behind < window)
        return self.masks[key]


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
    rows = [states.squeeze(0).transpose(0, 1) for states in (query, key, value)]
    if segments.paths is not None:
        rows[1:] = [states.index_select(0, segments.paths) for states in rows[1:]]
    pieces = zip(
        segments.owned,
        segments.seen,
        rows[0].split(segments.owned),
        rows[1].split(segments.seen),
        rows[2].split(segments.seen),
        strict=True,
    )
    shared_heads = query.shape[1] != key.shape[1]
    outputs = []
    for owned, seen, q, k, v in pieces:
        mask = segments.mask(owned, seen, sliding_window, query.device)
        output = F.scaled_dot_product_attention(
            q.transpose(0, 1)[None], k.transpose(0, 1)[None], v.transpose(0, 1)[None],
            attn_mask=mask, is_causal=mask is None, scale=scaling, enable_gqa=shared_heads,
        )  # fmt: skip
        outputs.append(output.squeeze(0).transpose(0, 1))
    return torch.cat(outputs)[None], None


def attend_by_segments(model: PreTrainedModel) -> PreTrainedModel:
    """Let ``model`` attend within packed rows, and return it."""
    AttentionInterface.register(SEGMENTS, attend)
    model.set_attn_implementation(SEGMENTS)
    return model
