"""What of a source is left out, and why.

Owns the reasons and their count. Invariant: whatever was read is either kept or counted here, with the file and the
record where it lies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

EXAMPLES = 3
"""How many examples of each reason are kept."""
_LONGEST_EXAMPLE = 300


class Reason(StrEnum):
    """Why something is left out."""

    DAMAGED = "damaged"
    """It cannot be read, or is not in the form of its file."""
    NO_ACTION = "no action"
    """What the agent said is no action of the grammar."""
    PROMPT_TOO_LONG = "prompt too long"
    """Instruction and earlier actions alone exceed ``policy.max_prompt_tokens``; a page is cut instead."""
    ACTION_TOO_LONG = "action too long"
    """The action exceeds ``policy.max_new_tokens``."""
    NO_OUTCOME = "no outcome"
    """Nothing says whether the task was solved."""
    DUPLICATE = "duplicate"
    """The same was there before."""
    HELD_OUT = "held out"
    """The instruction is that of a task that the recipe evaluates on."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: a file's name within the source, and its record there, from 1 (0: the file itself)."""

    file: str
    record: int


@dataclass(frozen=True, slots=True)
class Example:
    """One thing that was left out: where it stands, and what was found."""

    file: str
    record: int
    found: str


@dataclass(slots=True)
class LeftOut:
    """How many steps were left out for one reason, and the first examples."""

    steps: int = 0
    examples: list[Example] = field(default_factory=list)


class LeftOuts:
    """All that was left out of a source, by reason."""

    def __init__(self) -> None:
        self.by_reason: dict[Reason, LeftOut] = {}

    def add(self, reason: Reason, place: Place, found: str, steps: int = 1) -> None:
        """Count ``steps`` steps (a record that cannot be read counts as one), and keep an example."""
        entry = self.by_reason.setdefault(reason, LeftOut())
        entry.steps += steps
        if len(entry.examples) < EXAMPLES:
            shown = found if len(found) <= _LONGEST_EXAMPLE else f"{found[: _LONGEST_EXAMPLE - 1]}…"
            entry.examples.append(Example(place.file, place.record, shown))
