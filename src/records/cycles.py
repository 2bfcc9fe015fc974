"""When somebody goes round in circles: hashes of states, actions without their wrapping, and cycles among moves.

Owns what "stuck" means where it is read off a history, for whoever plays (re-planning) and whoever looks back
(the failure analyzer). Pure functions of texts and of sequences; a *move* is anything that can be compared, by default
the pair of a state's hash and the action taken there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_WRAPPING = re.compile(r"\A[\s\S]*?</think>|</?answer>|^[ \t]*```[a-z]*[ \t]*$|^[ \t]*#[^\n]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cycle:
    """``length`` moves that came ``repeats`` times in a row, the first of them at index ``start``."""

    start: int
    length: int
    repeats: int


def state_hash(url: str, observation: str) -> str:
    """Return a short name of what the agent saw: the same page in the same state has the same one."""
    return hashlib.blake2b(f"{url}\n{observation}".encode("utf-8", "replace"), digest_size=8).hexdigest()


def bare_action(text: str) -> str:
    """Return the call that an action's text makes, without its thoughts, tags, fences and comment lines."""
    return " ".join(_WRAPPING.sub("", text).split())


def same_ending(actions: Sequence[Hashable]) -> int:
    """Return how many of the last actions are the same one; 0 of none."""
    return next((n for n, action in enumerate(reversed(actions)) if action != actions[-1]), len(actions))


def cycle_at_end(moves: Sequence[Hashable], repeats: int, longest: int) -> Cycle | None:
    """Return the shortest cycle of at most ``longest`` moves that the moves end with, at least ``repeats`` times.

    Raises ``ValueError`` unless ``repeats`` is 2 or more and ``longest`` 1 or more.
    """
    if repeats < 2 or longest < 1:
        raise ValueError(f"a cycle comes at least twice and has a move, found repeats {repeats} and longest {longest}")
    count = len(moves)
    for length in range(1, min(longest, count // repeats) + 1):
        start = count - length
        while start and moves[start - 1] == moves[start - 1 + length]:
            start -= 1
        if count - start >= repeats * length:
            return Cycle(start, length, (count - start) // length)
    return None


def first_cycle(moves: Sequence[Hashable], repeats: int, longest: int) -> Cycle | None:
    """Return the cycle that comes ``repeats`` times before any other does; see ``cycle_at_end``."""
    ends = (cycle_at_end(moves[:end], repeats, longest) for end in range(1, len(moves) + 1))
    return next((cycle for cycle in ends if cycle), None)
