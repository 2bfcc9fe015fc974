"""Resets in the background of the driver: an event loop in a thread, in which deployments are reset side by side.

Owns ``Resets``. Invariants: a reset that was begun is reported once, with what went wrong; each ends by its resetter's
own deadline; after ``close`` nothing of them runs.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Mapping

from environments.webarena.reset.protocol import Resetter
from records.failures import EpisodeFailed
from records.supervision import end_tasks, supervised

_LOG = logging.getLogger(__name__)
_CLOSE_S = 10.0
"""Fixed: a reset that is cancelled ends what it started at once, or is left behind with its thread."""


class Resets:
    """Resets units by their ``resetters``; use as a context manager, from one thread."""

    def __init__(self, resetters: Mapping[str, Resetter]) -> None:
        self._resetters = resetters
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="site-resets", daemon=True)
        self._ended: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()

    def __enter__(self) -> Resets:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Cancel what runs and end the thread."""
        try:
            asyncio.run_coroutine_threadsafe(self._cancel(), self._loop).result(_CLOSE_S)
        except TimeoutError:
            _LOG.warning("a reset of the sites did not end within %g s; it is left behind", _CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_S)
        if not self._thread.is_alive():
            self._loop.close()

    def begin(self, unit: str) -> None:
        """Begin the reset of a unit."""
        asyncio.run_coroutine_threadsafe(self._reset(unit), self._loop)

    def ended(self) -> list[tuple[str, str]]:
        """Return the units whose reset has ended since, each with what went wrong ("" where nothing did)."""
        found = []
        while not self._ended.empty():
            found.append(self._ended.get_nowait())
        return found

    async def _reset(self, unit: str) -> None:
        # Whatever goes wrong in a reset, its own program or server included, is told to those who wait for it.
        error = await supervised(self._resetters[unit].reset(unit))
        wrong = error.failure.detail if isinstance(error, EpisodeFailed) else repr(error) if error else ""
        if wrong:
            _LOG.warning("deployment %s was not reset: %s", unit, wrong)
        else:
            _LOG.info("deployment %s was reset", unit)
        self._ended.put((unit, wrong))

    async def _cancel(self) -> None:
        own = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not own]
        if tasks:
            await end_tasks(*tasks)
