"""The end of one act, handed down from the episode to everything that the act waits for.

Owns ``Deadline``. Invariants: an act has one clock; where its time runs out it fails once, with the code of the part
that was being waited for. It reads a clock that cannot jump.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure, FailureCode

T = TypeVar("T")

UNHURRIED_S = 120.0
"""Fixed: only who plays by hand gives no deadline; an episode gives each act its own."""

_AT_THE_END_S = 0.5
"""Fixed: a part that fails so shortly before the end has used up the time, and stays named."""


class Deadline:
    """An instant ``limit_s`` seconds from now; past it an act fails with ``code``, unless a part of it is named.

    ``setting`` is the setting that the limit comes from, for the failure's text.
    """

    def __init__(
        self, limit_s: float = UNHURRIED_S, code: FailureCode = codes.STEP_TIMEOUT, setting: str = "", what: str = ""
    ) -> None:
        self._ends = time.monotonic() + limit_s
        self._limit = f"{limit_s:g} s" + (f" ({setting})" if setting else "")
        self._parts = [Failure(code, what)]

    def left(self, most_s: float = math.inf) -> float:
        """Return the seconds that are left, at least 0 and at most ``most_s``."""
        return max(0.0, min(most_s, self._ends - time.monotonic()))

    @contextmanager
    def waiting_for(self, code: FailureCode, what: str) -> Iterator[None]:
        """Name what is being waited for; where time runs out meanwhile, the failure has its code."""
        part = Failure(code, what)
        self._parts.append(part)
        try:
            yield
        except Exception:  # a cancellation is none: time may have run out, and the innermost part stays named
            if self.left() > _AT_THE_END_S:
                self._parts.remove(part)
            raise
        self._parts.remove(part)

    async def run(self, work: Awaitable[T]) -> T:
        """Await ``work``; raise ``EpisodeFailed`` when it has not ended by then. It is cancelled and may clean up."""
        limit = asyncio.timeout(self.left())
        try:
            async with limit:
                return await work
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise EpisodeFailed(self._failure()) from error

    def _failure(self) -> Failure:
        part = self._parts[-1]
        named = next((known.detail for known in reversed(self._parts) if known.detail), "")
        return Failure(part.code, f"{named or 'the act'}: not done within {self._limit}")
