"""Which columns of the slots new tokens may attend to, in the form that a model's layers expect.

Owns ``AttentionMasks``. A column of a row is a position of its reply, so that causality and windows are differences of
numbers; what lies behind a row's length is behind every position, and so never seen.
"""

from __future__ import annotations

import torch


class AttentionMasks:
    """The masks of the model with this ``config``; raises ``ValueError`` for kinds of layers that are not served."""

    def __init__(self, config: object) -> None:
        self._window: int | None = getattr(config, "sliding_window", None)
        kinds = set(getattr(config, "layer_types", None) or ())
        unknown = kinds - {"full_attention", "sliding_attention"}
        if unknown:
            raise ValueError(f"the engine serves layers of full or sliding attention, this model has {sorted(unknown)}")
        self._kinds = kinds or {"sliding_attention" if self._window else "full_attention"}
        self._additive = getattr(config, "_attn_implementation", "sdpa") != "sdpa"

    def build(
        self, positions: torch.Tensor, width: int, dtype: torch.dtype
    ) -> torch.Tensor | dict[str, torch.Tensor] | None:
        """Return masks (rows, 1, tokens, width) for new tokens at ``positions`` (rows, tokens)."""
        distance = positions[:, :, None] - torch.arange(width, device=positions.device)
        masks: dict[str, torch.Tensor] = {}
        for kind in self._kinds:
            seen = distance >= 0
            if kind == "sliding_attention" and self._window:
                seen &= distance < self._window
            masks[kind] = self._as_expected(seen[:, None], dtype)
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _as_expected(self, seen: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if not self._additive:
            return seen
        hidden = torch.full(seen.shape, torch.finfo(dtype).min, dtype=dtype, device=seen.device)
        return hidden.masked_fill_(seen, 0.0)
