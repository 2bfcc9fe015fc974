"""What can go wrong with an episode, typed where it happens.

Owns ``Failure`` and ``EpisodeFailed``. Invariant: a failure is never a reward of 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """Whose fault it is that an episode did not run to its end (decided where it happens)."""

    INFRA = "infra"
    TASK = "task"
    POLICY = "policy"
    JUDGE = "judge"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an episode has no verdict: a kind, a stable ``code`` such as ``browser_crashed``, and a detail."""

    kind: FailureKind
    code: str
    detail: str = ""


class EpisodeFailed(Exception):
    """Raised where a failure happens; carries the typed ``failure`` and survives pickling."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        return f"{self.failure.kind}/{self.failure.code}: {self.failure.detail}"
