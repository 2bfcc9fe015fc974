"""A run of episodes beside other work: it ends when all are played, or earlier, when it is told to.

Owns the thread that plays, and ``Ending``. Invariants: the pool belongs to that thread until the block is left; the
block is left only when the thread has ended; what is being played when the run is closed is finished, and nothing
begins any more. Must not import ray.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from enum import StrEnum
from types import TracebackType
from typing import Protocol

from records.supervision import attempted
from rollout_workers.leases import Journal
from rollout_workers.results import NOTHING_PLAYED, RolloutCounts, RolloutResult
from rollout_workers.spec import EpisodeSpec

logger = logging.getLogger(__name__)

_LOOK_S = 0.5
"""Fixed: a pace while a run ends, within the limits that the run itself has."""
_LEAVE_S = 30.0
"""Fixed: a run that is left ends with its next turn, which takes as long as its calls to lost workers."""


class Ending(StrEnum):
    """How a run is to end."""

    WHEN_ALL_ARE_PLAYED = "when all are played"
    WHEN_IDLE = "when what is being played is finished; nothing begins any more"
    NOW = "now; what is being played is cut short"


class Pool(Protocol):
    """What ``rollout_workers.pool.RolloutPool`` is here."""

    def run(
        self,
        specs: Sequence[EpisodeSpec],
        on_counts: Callable[[RolloutCounts], None] | None,
        journal: Journal,
        ending: Callable[[], Ending] | None,
    ) -> RolloutResult:
        """Play episodes until ``ending`` says otherwise."""
        ...

    def rest(self) -> None:
        """Let go of the workers that are not needed while nothing is played."""
        ...


class RolloutsAhead:
    """Context manager: episodes are played while its block works, and closed with it.

    An error that ends the block cuts short what is being played; else ``result`` has what was done, afterwards.
    """

    def __init__(
        self,
        pool: Pool,
        specs: Sequence[EpisodeSpec],
        on_counts: Callable[[RolloutCounts], None],
        journal: Journal,
    ) -> None:
        self._pool, self._specs, self._on_counts, self._journal = pool, specs, on_counts, journal
        self._ending = Ending.WHEN_ALL_ARE_PLAYED
        self._found: RolloutResult | BaseException = NOTHING_PLAYED
        self._thread = threading.Thread(target=self._work, name="rollouts-ahead", daemon=True)
        self.result = NOTHING_PLAYED

    def __enter__(self) -> RolloutsAhead:
        """Begin to play."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the run as the block ended; raise what the pool raises where that was well."""
        if error is not None:
            self._leave()
            if isinstance(self._found, BaseException):
                logger.warning("rollouts that were begun ahead ended by themselves: %s", self._found)
            return
        try:
            self._ending = Ending.WHEN_IDLE
            while self._thread.is_alive():
                self._thread.join(_LOOK_S)
        finally:
            self._leave()
        if isinstance(self._found, BaseException):
            raise self._found
        self.result = self._found

    def _leave(self) -> None:
        self._ending = Ending.NOW
        self._thread.join(_LEAVE_S)
        if self._thread.is_alive():
            logger.warning("rollouts that were begun ahead did not end within %g s", _LEAVE_S)

    def _work(self) -> None:
        self._found = attempted(self._play)

    def _play(self) -> RolloutResult:
        result = self._pool.run(self._specs, self._on_counts, self._journal, lambda: self._ending)
        if self._ending is Ending.WHEN_ALL_ARE_PLAYED:
            self._pool.rest()
        return result
