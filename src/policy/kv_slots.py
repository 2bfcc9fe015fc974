"""The keys and values of all running replies, one slot (row) per reply, and of some prompts that were read before.

Owns ``KeyValueSlots``. Every row is aligned to the left and has its own length, so that a reply
joins or leaves without a copy of the others; the mask hides what lies beyond a row's length, which
makes the content there invisible. Running rows are always the first ones, kept prompts lie behind all of them. Buffers
grow on demand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from policy.kept_prompts import Head, KeptPrompts
from policy.torch_backend import COLUMN_BLOCK


class KeyValueSlots:
    """Key and value buffers of shape (rows, heads, columns, head width) per layer, with one length per row.

    Args:
        max_rows: how many replies may run at once.
        kept_rows: how many prompts are kept for later ones that begin alike.
        device: where the model is.
    """

    def __init__(self, max_rows: int, kept_rows: int, device: torch.device) -> None:
        self.max_rows = max_rows
        self.all_rows = max_rows + kept_rows
        self.device = device
        self.kept = KeptPrompts(kept_rows)
        self.rows = 0
        self.columns = 0
        self.lengths: list[int] = []
        self.width = 0
        """Columns in use by the rows of the pass that has begun."""
        self.positions = torch.zeros(0, 0, dtype=torch.long, device=device)
        """Columns (rows, tokens) that this pass writes."""
        self.first_row = 0
        self._layers: list[_SlotLayer] = []
        self._cache: Cache | None = None

    def admit(self, prefilled: Sequence[tuple[torch.Tensor, torch.Tensor]], lengths: list[int]) -> None:
        """Append one row per prompt.

        ``prefilled`` holds each layer's keys and values (prompts, heads, tokens, head width) of prompts
        padded on the right, whose true numbers of tokens are ``lengths``.
        """
        if not self._layers:
            self._layers = [_SlotLayer(self) for _ in prefilled]
            self._cache = Cache(layers=list(self._layers))
        first, last, longest = self.rows, self.rows + len(lengths), max(lengths)
        if last > self.max_rows:
            raise ValueError(f"{last} replies at once exceed the {self.max_rows} slots")
        self._reserve(longest + 1)
        for layer, (keys, values) in zip(self._layers, prefilled, strict=True):
            layer.reserve(keys, self.all_rows, self.columns)
            layer.stored_keys[first:last, :, :longest] = keys[:, :, :longest]
            layer.stored_values[first:last, :, :longest] = values[:, :, :longest]
        self.lengths += lengths
        self.rows = last

    def begin_step(self) -> Cache:
        """Prepare to write one token per row and return the cache to hand to the model."""
        return self._begin(0, [[length] for length in self.lengths], max(self.lengths) + 1)

    def end_step(self) -> None:
        """Count the token that the model has written to every row."""
        self.lengths = [length + 1 for length in self.lengths]

    def begin_rests(self, heads: Sequence[Head], lengths: Sequence[int]) -> Cache:
        """Append one row per prompt, with its head; prepare to write the rest of it, and return the cache.

        ``lengths`` are the prompts'. Rests are padded on the right; padding is written where the next token will be.
        """
        first, longest = self.rows, max(n - head.length for head, n in zip(heads, lengths, strict=True))
        written = [
            [min(head.length + i, length) for i in range(longest)] for head, length in zip(heads, lengths, strict=True)
        ]
        self.lengths += lengths
        self.rows += len(heads)
        cache = self._begin(first, written, max(lengths) + 1)
        for row, head in enumerate(heads, first):
            self._copy(self.max_rows + head.row, row, head.length)
        return cache

    def keep(self, row: int, prompt_ids: Sequence[int]) -> None:
        """Keep the keys and values of a row's prompt, in place of the oldest that is kept."""
        place = self.kept.place(prompt_ids)
        if place is not None:
            self._copy(row, self.max_rows + place, len(prompt_ids))

    def _begin(self, first: int, written: list[list[int]], width: int) -> Cache:
        if self._cache is None or not written:
            raise ValueError("no reply is running")
        self._reserve(width)
        for layer in self._layers:
            layer.reserve(layer.stored_keys, self.all_rows, self.columns)
        self.first_row, self.width = first, width
        self.positions = torch.tensor(written, dtype=torch.long, device=self.device)
        return self._cache

    def _copy(self, source: int, target: int, columns: int) -> None:
        for layer in self._layers:
            layer.stored_keys[target, :, :columns] = layer.stored_keys[source, :, :columns]
            layer.stored_values[target, :, :columns] = layer.stored_values[source, :, :columns]

    def release(self, row: int) -> int | None:
        """Free ``row``; the last row moves into its place. Returns the row that moved, None if none had to."""
        last = self.rows - 1
        if row != last:
            self._copy(last, row, self.lengths[last])
            self.lengths[row] = self.lengths[last]
        self.lengths.pop()
        self.rows = last
        return None if row == last else last

    def _reserve(self, columns: int) -> None:
        if columns > self.columns:
            self.columns = -(-columns // COLUMN_BLOCK) * COLUMN_BLOCK


class _SlotLayer(CacheLayerMixin):
    """One layer's buffers; ``update`` writes each row's token at that row's own column."""

    def __init__(self, slots: KeyValueSlots) -> None:
        super().__init__()
        self._slots = slots
        self.stored_keys = self.stored_values = torch.empty(0, 0, 0, 0)

    def reserve(self, like: torch.Tensor, rows: int, columns: int) -> None:
        """Make room for ``columns`` columns; what is there stays."""
        if self.stored_keys.shape[2] >= columns:
            return
        shape = (rows, like.shape[1], columns, like.shape[3])
        keys, values = like.new_zeros(shape), like.new_zeros(shape)
        had_rows, _, had_columns, _ = self.stored_keys.shape
        if had_rows:
            keys[:, :, :had_columns] = self.stored_keys
            values[:, :, :had_columns] = self.stored_values
        self.stored_keys, self.stored_values, self.is_initialized = keys, values, True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write some tokens per row, (rows, heads, tokens, head width), and return what the rows may attend to."""
        slots = self._slots
        rows = slice(slots.first_row, slots.first_row + len(slots.positions))
        index = torch.arange(rows.start, rows.stop, device=slots.device)[:, None]
        self.stored_keys[index, :, slots.positions] = key_states.transpose(1, 2)
        self.stored_values[index, :, slots.positions] = value_states.transpose(1, 2)
        return self.stored_keys[rows, :, : slots.width], self.stored_values[rows, :, : slots.width]

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Nothing to do: ``reserve`` makes the buffers."""

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Return the number of columns and the offset of the first."""
        return self._slots.width, 0

    def get_seq_length(self) -> int:
        """Return the longest row's length before this pass."""
        return self._slots.width - self._slots.positions.shape[1]

    def get_max_length(self) -> int:
        """Return -1: buffers grow."""
        return -1
