"""What can be configured about the failure analyzer; imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from records.bounds import at_least


@dataclass(frozen=True)
class AnalysisSettings:
    """When a failed episode counts as stuck, and when as no reasonable attempt (MiRA s. 4, table 1)."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    same_actions: int = 4
    """So many identical actions at an episode's end make it stuck, whatever its pages did."""

    cycle_repeats: int = 3
    """A cycle of actions in the same states makes an episode stuck when it comes so often in a row."""

    longest_cycle: int = 4
    """Most actions of such a cycle."""

    early_steps: int = 2
    """An exit among the first so many actions, before an expert would exit, is no attempt; nor is nonsense so long."""

    def __post_init__(self) -> None:
        at_least(self, 2, "same_actions", "cycle_repeats")
        at_least(self, 1, "longest_cycle", "early_steps")
