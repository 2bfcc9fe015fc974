"""What WebArena's evaluators can be told: who compares meanings for them, and how long that is waited for.

Owns ``EvaluatorSettings``. Imports neither torch nor pydantic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from records.bounds import times


@dataclass(frozen=True)
class EvaluatorSettings:
    """WebArena's evaluators: the LLM judge that they ask about meaning, and how long it is waited for."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}
    operational: ClassVar[tuple[str, ...]] = ("answer_timeout_s",)

    answer_judge: str = ""
    """Judge of answers (a registered name or ``module:name``) for tasks with ``fuzzy_match``; its own options stand
    under its name in ``judges``. Without one, such tasks fail as ``judge/no_judge`` where their answer is no exact
    match."""

    answer_timeout_s: float = 12.0
    """Longest wait for one answer, in seconds; past it the question is asked again, as after any other trouble, until
    ``rollout.judge_deadline_s`` is over and the episode has failed as ``judge/…``."""

    def __post_init__(self) -> None:
        """Refuse times that leave no time."""
        times(self)
