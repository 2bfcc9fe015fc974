"""Ends the pages of one Chromium that take more memory than a page may have.

Owns ``PageMemory``. V8's own limit holds for a page's script objects only; what lies beside them (documents, buffers,
pictures) has none, and one page could take the machine's memory and with it every episode on it. Invariants: only
renderers that Chromium itself names are ended; an episode that loses its page this way can tell it from a crash.
Renderers of different contexts are different processes. Where there is no ``/proc`` (not on Linux) nothing is ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Iterable
from pathlib import Path

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from records import failure_codes as codes
from records.failures import Failure

_CHECK_S = 0.5
"""Fixed: how often is looked; a look costs a millisecond, and a page may fill a gigabyte in a second."""
_ANSWER_S = 5.0
"""Fixed: a browser that does not answer is asked again, and its episodes have deadlines of their own."""
_PROC = Path("/proc")
_LOG = logging.getLogger(__name__)


class PageMemory:
    """Watches the renderers that ``browser`` (a wire to Chromium itself) names, from ``start`` to ``stop``."""

    def __init__(self, browser: CDPSession, limit_mb: int) -> None:
        self._browser, self._limit_mb = browser, limit_mb
        self._ended: list[Failure] = []
        self._pids: set[int] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start watching; needs a running loop."""
        self._task = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """End the watching; safe to call twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()) is not None:
                _LOG.error("the memory of pages was not watched to the end", exc_info=error)

    def take_ended(self) -> Failure | None:
        """Return why a page was ended, each time once; None when none was since."""
        return self._ended.pop(0) if self._ended else None

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_S)
            try:
                async with asyncio.timeout(_ANSWER_S):
                    told = await self._browser.send("SystemInfo.getProcessInfo")
            except (PlaywrightError, TimeoutError) as error:
                # It hangs or has gone, its pages with it; whoever starts the next browser stops this.
                _LOG.debug("the browser does not name its processes: %s", error)
                continue
            self._end_the_large([process["id"] for process in told["processInfo"] if process["type"] == "renderer"])

    def _end_the_large(self, renderers: Iterable[int]) -> None:
        self._pids &= set(renderers)
        for pid in set(renderers) - self._pids:
            held_mb = resident_mb(pid)
            if held_mb <= self._limit_mb:
                continue
            detail = f"the page's process held {held_mb} MB; browser.page_memory_mb is {self._limit_mb}"
            _LOG.warning("process %d is ended: %s", pid, detail)
            # Told first: the news of its end must find the reason.
            self._ended.append(Failure(codes.PAGE_MEMORY, detail))
            self._pids.add(pid)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                self._ended.pop()


def resident_mb(pid: int) -> int:
    """Return the resident memory of a process in MB, shared pages included; 0 where there is no such process."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
