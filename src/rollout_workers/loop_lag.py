"""How late the event loop of a worker runs: a number for the driver, a mark on the episodes that it may have spoilt.

Owns the measuring task. Invariants: a stall counts from the moment it is over, even before the measuring task had
its turn; the worst lag is handed out once. What a frozen or overloaded process did to an episode in progress cannot be
told from what the agent did, so such an episode is not scored (``worker`` decides that). Must not import ray.
"""

from __future__ import annotations

import asyncio

_INTERVAL_S = 0.25
"""Fixed: how often is measured; ``rollout.loop_lag_limit_s`` says what counts."""


class LoopLag:
    """Measures the running event loop from ``start`` to ``stop``; a stall is a lag of more than ``limit_s`` seconds."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._worst_s = 0.0
        self._stalls = 0
        self._due = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def stalls(self) -> int:
        """How many stalls there were, the one that has just ended included."""
        return self._stalls + (self._late_s() > self._limit_s)

    def take_worst_s(self) -> float:
        """Return the worst lag since the last call, in seconds."""
        worst, self._worst_s = max(self._worst_s, self._late_s()), 0.0
        return worst

    def start(self) -> None:
        """Start measuring; needs a running loop."""
        if self._task is None:
            self._due = asyncio.get_running_loop().time() + _INTERVAL_S
            self._task = asyncio.create_task(self._measure())

    def stop(self) -> None:
        """End the measuring; safe to call twice."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _measure(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL_S)
            late_s = self._late_s()
            self._worst_s = max(self._worst_s, late_s)
            self._stalls += late_s > self._limit_s
            self._due = asyncio.get_running_loop().time() + _INTERVAL_S

    def _late_s(self) -> float:
        """Return how much later than due it is, in seconds; 0 while nothing is measured."""
        return 0.0 if self._task is None else max(0.0, asyncio.get_running_loop().time() - self._due)
