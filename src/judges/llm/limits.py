"""How fast one model may be asked: requests and tokens within any minute, and requests under way.

Owns ``Limits``. Invariants: no minute holds more than it may, wherever it begins; who asks first is let through first;
a question larger than a minute's tokens goes alone. The clock cannot jump.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from judges.llm.settings import ModelSettings

_WINDOW_S = 60.0
"""Fixed: providers count by the minute."""


@dataclass(slots=True)
class Use:
    """One request: when it began, and its tokens, first as estimated and then as counted."""

    began: float
    tokens: int


class Limits:
    """The limits of one model, for one process that asks it."""

    def __init__(self, settings: ModelSettings) -> None:
        self._requests, self._tokens = settings.requests_per_minute, settings.tokens_per_minute
        self._under_way = asyncio.Semaphore(settings.concurrent_requests)
        self._line = asyncio.Lock()
        self._recent: deque[Use] = deque()

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[Use]:
        """Wait until a request of about ``tokens`` may be sent; the caller, who has the clock, ends the wait."""
        async with self._under_way:
            async with self._line:
                while (wait_s := self._wait_s(tokens)) > 0:
                    await asyncio.sleep(wait_s)
                use = Use(time.monotonic(), tokens)
                self._recent.append(use)
            yield use

    def _wait_s(self, tokens: int) -> float:
        now, recent = time.monotonic(), self._recent
        while recent and now - recent[0].began >= _WINDOW_S:
            recent.popleft()
        used = sum(use.tokens for use in recent)
        if not recent or (len(recent) < self._requests and used + tokens <= self._tokens):
            return 0.0
        return recent[0].began + _WINDOW_S - now
