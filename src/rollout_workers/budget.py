"""How much may go wrong before a run must stop: a pure count of failures by kind among its newest attempts.

Owns the decision to stop. Invariants: an incident is counted once (the death of a worker is one,
whatever it was playing); limits never change during a run; what is older than the window no longer counts, so
that a long run neither collects accidents until it stops nor takes longer than a short one to notice an outage; the
message says what happened most and what to do. Must not import ray or asyncio.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping

from records.failures import Failure, FailureKind
from rollout_workers.settings import RolloutSettings


class FailureBudgetExceeded(RuntimeError):
    """More failures of one kind than the run may have; the message is for the person who started it."""


class FailureBudget:
    """Counts incidents by kind and code against a limit for each kind."""

    def __init__(self, limits: Mapping[FailureKind, int], window: int = 256) -> None:
        """Take the largest number of incidents allowed for each kind among the newest ``window`` attempts.

        A kind left out is unlimited. Raises ``ValueError`` for a limit that the window could never exceed.
        """
        if limits and window <= max(limits.values()):
            raise ValueError(f"expected a window of more than {max(limits.values())} attempts, found {window}")
        self._limits = dict(limits)
        self._recent: deque[Failure | None] = deque(maxlen=window)
        self._totals: Counter[str] = Counter()
        self._end: Failure | None = None

    @classmethod
    def for_run(cls, episodes: int, shares: Mapping[FailureKind, float], *, floor: int, window: int) -> FailureBudget:
        """Allow ``max(floor, share * attempts)`` incidents of each kind, of at most ``window`` attempts.

        A share of 1 or more sets no limit.
        """
        counted = min(episodes, window)
        limits = {kind: max(floor, math.ceil(share * counted)) for kind, share in shares.items() if share < 1}
        return cls(limits, max([window, *(limit + 1 for limit in limits.values())]))

    @classmethod
    def of_rollouts(cls, episodes: int, settings: RolloutSettings) -> FailureBudget:
        """Allow what the settings of rollouts allow ``episodes``."""
        shares = {
            FailureKind.INFRA: settings.infra_failure_share,
            FailureKind.TASK: settings.task_failure_share,
            FailureKind.POLICY: settings.policy_failure_share,
            FailureKind.JUDGE: settings.judge_failure_share,
        }
        return cls.for_run(episodes, shares, floor=settings.failure_floor, window=settings.failure_window)

    def record(self, failure: Failure) -> None:
        """Count one incident."""
        self._recent.append(failure)
        self._totals[str(failure.code)] += 1
        if failure.code.ends_run:
            self._end = failure

    def succeed(self) -> None:
        """Count one attempt that was completed."""
        self._recent.append(None)

    def counts(self) -> dict[str, int]:
        """Return all incidents so far as ``{"infra/browser_crashed": 2, …}``, most frequent first."""
        return dict(self._totals.most_common())

    def exceeded(self) -> FailureKind | None:
        """Return the first kind that is over its limit, or None."""
        kinds = Counter(failure.kind for failure in self._recent if failure is not None)
        return next((kind for kind, limit in self._limits.items() if kinds[kind] > limit), None)

    def check(self) -> None:
        """Raise ``FailureBudgetExceeded`` when a kind is over its limit, or a failure ends the run by itself."""
        if self._end is not None:
            raise FailureBudgetExceeded(f"stopped: {self._end.detail}. What to do: {self._end.code.remedy}")
        kind = self.exceeded()
        if kind is None:
            return
        found = [failure for failure in self._recent if failure is not None and failure.kind is kind]
        codes = Counter(failure.code for failure in found).most_common(3)
        raise FailureBudgetExceeded(
            f"stopped after {len(found)} {kind} failures; at most {self._limits[kind]} are allowed among the newest "
            f"{self._recent.maxlen} attempts ({', '.join(f'{code.name} x{n}' for code, n in codes)}; the last one: "
            f"{found[-1].detail or 'no detail'}). What to do: {codes[0][0].remedy or kind.advice}; "
            f"raise rollout.{kind}_failure_share or rollout.failure_floor only if that many are expected"
        )
