"""A model over key-value slots: reads prompts into rows, and feeds every row's last token back in.

Owns ``SlotModel``: the passes through the model, what is read at once and what is not read again. A prompt that begins
as a kept one is read from behind that head where it is less work. Invariants: rows are appended in the order that
``read`` says; kept keys and values are of the weights that the model has. Knows no requests.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer

from policy.kept_prompts import NO_HEAD, Head
from policy.kv_slots import KeyValueSlots
from policy.masks import AttentionMasks

_PASS_TOKENS = 64
"""A further pass costs about as much as so many tokens more in one, for the tiny model on a CPU."""
_LEAST_SAVED = 16
"""Finding and copying kept keys and values costs about as much as reading so many tokens."""

_Ids = Sequence[int]
_Part = list[tuple[int, Head]]
"""Prompts that are read in one pass, by their numbers, each with its kept head."""


class SlotModel:
    """``model`` over ``max_rows`` slots, with ``kept_rows`` more for prompts that were read."""

    def __init__(self, model: PreTrainedModel, max_rows: int, kept_rows: int) -> None:
        self.model = model
        self.slots = KeyValueSlots(max_rows, kept_rows, model.device)
        self.cached_tokens = 0
        """Those of the prompts' tokens that were not read again."""
        self._masks = AttentionMasks(model.config.get_text_config(decoder=True))

    def read(self, prompts: Sequence[_Ids]) -> list[tuple[list[int], torch.Tensor]]:
        """Append a row for each prompt and keep it for later ones.

        Returns:
            For each pass the numbers of its prompts, in the order of their rows, and their next tokens' logits
            (prompts, vocabulary).
        """
        first, read = self.slots.rows, []
        for part in _passes(prompts, [self.slots.kept.head_of(prompt) for prompt in prompts]):
            whole = [(number, NO_HEAD) for number, _ in part]
            saves = _work(prompts, part) + _LEAST_SAVED <= _work(prompts, whole)
            logits = self._read_rests(prompts, part) if saves else self._read_whole([prompts[n] for n, _ in part])
            read.append(([number for number, _ in part], logits))
        for row, number in enumerate((number for numbers, _ in read for number in numbers), first):
            self.slots.keep(row, prompts[number])
        return read

    def decode(self, last_ids: _Ids) -> torch.Tensor:
        """Feed every row's last token back in; return its next token's logits (rows, vocabulary)."""
        cache = self.slots.begin_step()
        logits = self._forward(torch.tensor([[token] for token in last_ids], device=self.model.device), cache)
        self.slots.end_step()
        return logits[:, -1]

    def _read_whole(self, prompts: list[_Ids]) -> torch.Tensor:
        """Run prompts, padded on the right where causality hides the padding."""
        rows, ends = self._padded(prompts)
        kept, place = ends.unique(return_inverse=True)
        cache = DynamicCache()
        logits = self.model(input_ids=rows, past_key_values=cache, use_cache=True, logits_to_keep=kept).logits
        self.slots.admit(_states(cache), [len(prompt) for prompt in prompts])
        return _at(logits, place)

    def _read_rests(self, prompts: Sequence[_Ids], part: _Part) -> torch.Tensor:
        """Run what prompts have behind their kept heads."""
        rows, ends = self._padded([prompts[number][head.length :] for number, head in part])
        heads = [head for _, head in part]
        cache = self.slots.begin_rests(heads, [len(prompts[number]) for number, _ in part])
        kept, place = ends.unique(return_inverse=True)
        self.cached_tokens += sum(head.length for head in heads)
        return _at(self._forward(rows, cache, kept), place)

    def _forward(self, ids: torch.Tensor, cache: Cache, logits_to_keep: int | torch.Tensor = 0) -> torch.Tensor:
        """Return the logits of ``ids`` (rows, tokens) at the columns that the slots have made ready."""
        positions = self.slots.positions
        mask = self._masks.build(positions, self.slots.width, self.model.dtype)
        logits: torch.Tensor = self.model(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=logits_to_keep,
        ).logits
        return logits

    def _padded(self, prompts: Sequence[_Ids]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return ids (rows, tokens), padded on the right, and each row's last column (rows,)."""
        longest, device = max(map(len, prompts)), self.model.device
        rows = [[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts]
        ends = [len(prompt) - 1 for prompt in prompts]
        return torch.tensor(rows, device=device), torch.tensor(ends, device=device)


def _passes(prompts: Sequence[_Ids], heads: Sequence[Head]) -> list[_Part]:
    """Return what to read at once: those with a head and those without apart, where padding would cost more."""
    everything = list(enumerate(heads))
    begun, whole = [one for one in everything if one[1].length], [one for one in everything if not one[1].length]
    if begun and whole and _work(prompts, begun) + _work(prompts, whole) + _PASS_TOKENS < _work(prompts, everything):
        return [begun, whole]
    return [everything]


def _work(prompts: Sequence[_Ids], part: _Part) -> int:
    """Return how many tokens a pass reads, padding included."""
    return len(part) * max(len(prompts[number]) - head.length for number, head in part)


def _at(logits: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """Return the logits (rows, vocabulary) that stand at ``place`` (rows,) of those kept (rows, kept, vocabulary)."""
    return logits[torch.arange(len(place), device=logits.device), place]


def _states(cache: DynamicCache) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return keys and values per layer; raise where a layer keeps no such state."""
    states: list[tuple[torch.Tensor, torch.Tensor]] = []
    for number, layer in enumerate(cache.layers):
        if not isinstance(layer, DynamicLayer) or layer.keys is None or layer.values is None:
            raise TypeError(f"layer {number} keeps {type(layer).__name__}; the engine serves keys and values only")
        states.append((layer.keys, layer.values))
    return states
