"""What can go wrong with an episode, typed where it happens.

Owns ``FailureCode``, ``Failure`` and ``EpisodeFailed``; ``records.failure_codes`` has every code of Waymark. Invariant:
a failure is never a reward of 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class FailureKind(StrEnum):
    """Whose fault it is that an episode did not run to its end (decided where it happens)."""

    INFRA = "infra"
    TASK = "task"
    POLICY = "policy"
    JUDGE = "judge"

    @property
    def advice(self) -> str:
        """What a person looks at first, where the code itself has no remedy."""
        return _ADVICE[self]


_ADVICE = {
    FailureKind.INFRA: "look at the browsers, the sites and the free memory of the rollout machines",
    FailureKind.TASK: "look at the tasks named above: they cannot be played as they are written",
    FailureKind.POLICY: "look at the policy servers: are they up, and fast enough for the request deadline?",
    FailureKind.JUDGE: "look at the evaluators and judge endpoints",
}


@dataclass(frozen=True, slots=True)
class FailureCode:
    """A stable name for one cause: its ``kind``, and the ``remedy``, what a person does about it.

    ``ends_run`` says that no other episode can fare better: the run stops at once. Environments and judges that are
    plugged in make codes of their own.
    """

    name: str
    kind: FailureKind
    remedy: str = field(default="", compare=False)
    ends_run: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        """Return ``kind/name``, as counts and logs name it."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an episode has no verdict: a code, and what was seen."""

    code: FailureCode
    detail: str = ""

    @property
    def kind(self) -> FailureKind:
        """Whose fault it is."""
        return self.code.kind


class EpisodeFailed(Exception):
    """Raised where a failure happens; carries the typed ``failure`` and survives pickling."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        return f"{self.failure.code}: {self.failure.detail}"
