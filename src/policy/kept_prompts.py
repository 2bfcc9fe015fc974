"""Which prompts' keys and values are kept, so that a later prompt that begins alike is read from where it differs.

Owns the choice: the longest common head, and whose place a new prompt takes. Invariants: heads are compared id by id;
at most ``rows`` prompts are kept, the oldest goes first; the tensors are ``policy.kv_slots``'. A prompt that served as
a head grows no younger for it: an episode's newest prompt takes its place for all that come, so that as many rows as
there are episodes at once are enough.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from records.episodes import IntArray


@dataclass(frozen=True, slots=True)
class Head:
    """The first ``length`` ids of a prompt, whose keys and values begin the kept row ``row``; 0 for none."""

    row: int
    length: int


NO_HEAD = Head(0, 0)


class KeptPrompts:
    """The prompts in ``rows`` rows."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._prompts: OrderedDict[int, IntArray] = OrderedDict()

    def head_of(self, ids: Sequence[int]) -> Head:
        """Return the longest kept head of a prompt; its last id, whose logits are wanted, is in none."""
        if not self._prompts:
            return NO_HEAD
        prompt = np.asarray(ids, dtype=np.int32)
        row = max(self._prompts, key=lambda row: common_length(self._prompts[row], prompt))
        length = min(common_length(self._prompts[row], prompt), len(prompt) - 1)
        return Head(row, length) if length else NO_HEAD

    def place(self, ids: Sequence[int]) -> int | None:
        """Return the row that keeps a prompt from now on; None where none does."""
        if not self._rows:
            return None
        prompt = np.asarray(ids, dtype=np.int32)
        within = [row for row, kept in self._prompts.items() if common_length(kept, prompt) == len(kept)]
        row = next(iter(within), len(self._prompts))
        if row == self._rows:
            row = next(iter(self._prompts))
        self._prompts[row] = prompt
        self._prompts.move_to_end(row)
        return row

    def clear(self) -> None:
        """Forget all prompts."""
        self._prompts.clear()


def common_length(one: IntArray, other: IntArray) -> int:
    """Return how many ids two sequences begin with alike."""
    shorter = min(len(one), len(other))
    different = np.flatnonzero(one[:shorter] != other[:shorter])
    return int(different[0]) if len(different) else shorter
