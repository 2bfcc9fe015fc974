"""How much may go wrong in one run before it must stop: a pure count of failures by kind.

Owns the decision to stop. Invariants: an incident is counted once (the death of a worker is one,
whatever it was playing); limits never change during a run; the message says what happened most and
what to look at. Must not import ray or asyncio.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from replay.records import Failure, FailureKind

ADVICE: Mapping[FailureKind, str] = {
    FailureKind.INFRA: "look at the browsers, the sites and the free memory of the rollout machines",
    FailureKind.TASK: "look at the tasks named above: they cannot be played as they are written",
    FailureKind.POLICY: "look at the policy servers: are they up, and fast enough for the request deadline?",
    FailureKind.JUDGE: "look at the evaluators and judge endpoints",
}


class FailureBudgetExceeded(RuntimeError):
    """More failures of one kind than the run may have; the message is for the person who started it."""


class FailureBudget:
    """Counts incidents by kind and code against a limit for each kind."""

    def __init__(self, limits: Mapping[FailureKind, int]) -> None:
        """Take the largest number of incidents allowed for each kind; a kind left out is unlimited."""
        self._limits = dict(limits)
        self._codes: dict[FailureKind, Counter[str]] = {kind: Counter() for kind in FailureKind}
        self._last: dict[FailureKind, str] = {}

    @classmethod
    def for_run(cls, episodes: int, shares: Mapping[FailureKind, float], floor: int) -> FailureBudget:
        """Allow ``max(floor, share * episodes)`` incidents of each kind; shares are of the run's episodes."""
        return cls({kind: max(floor, math.ceil(share * episodes)) for kind, share in shares.items()})

    def record(self, failure: Failure) -> None:
        """Count one incident."""
        self._codes[failure.kind][failure.code] += 1
        self._last[failure.kind] = failure.detail

    def counts(self) -> dict[str, int]:
        """Return the incidents so far as ``{"infra/browser_crashed": 2, …}``, most frequent first."""
        pairs = Counter({f"{kind}/{code}": n for kind, codes in self._codes.items() for code, n in codes.items()})
        return dict(pairs.most_common())

    def exceeded(self) -> FailureKind | None:
        """Return the first kind that is over its limit, or None."""
        for kind, limit in self._limits.items():
            if self._codes[kind].total() > limit:
                return kind
        return None

    def check(self) -> None:
        """Raise ``FailureBudgetExceeded`` when a kind is over its limit."""
        kind = self.exceeded()
        if kind is None:
            return
        codes = ", ".join(f"{code} x{n}" for code, n in self._codes[kind].most_common(3))
        raise FailureBudgetExceeded(
            f"stopped after {self._codes[kind].total()} {kind} failures; at most {self._limits[kind]} are allowed in "
            f"one run ({codes}; the last one: {self._last[kind] or 'no detail'}). What to do: {ADVICE[kind]}; "
            f"raise the budget in the rollout settings only if that many are expected"
        )
