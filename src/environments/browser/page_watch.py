"""Ends the pages of one Chromium that take what all pages share: more memory than a page may have, or the driver.

Owns ``PageWatch``. V8's own limit holds for a page's script objects only; what lies beside them (documents, buffers,
pictures) has none, nor has what other processes keep for a page (blobs, databases, histories), and one page could take
the machine's memory and with it every episode on it. Invariants: only renderers that Chromium names are ended; an
episode that loses its page this way can tell it from a crash. Renderers of different contexts are different processes.
Where there is no ``/proc`` (not on Linux) nothing is ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Sequence
from typing import Any

from playwright.async_api import CDPSession
from playwright.async_api import Error as PlaywrightError

from environments.browser.blame import Blame, Process, busiest
from environments.browser.process_facts import ancestors, resident_mb, worked_s
from records import failure_codes as codes
from records.failures import Failure, FailureCode

_CHECK_S = 0.5
"""Fixed: how often is looked; a look costs a millisecond, and a page may fill a gigabyte in a second."""
_FLOODED_S = 1.0
"""Fixed: an answer is a millisecond's work for both; what is a thousand times that in arrears is flooded."""
_LEAST_PART = 0.25
"""Fixed: of that work; what comes from several pages at once is nobody's flood."""
_NEWS_S = 60.0
"""Fixed: by then a driver that a page has flooded tells of its end; where its context closed before, nobody does."""
_LOG = logging.getLogger(__name__)


class PageWatch:
    """Watches the renderers that ``browser`` (a wire to Chromium itself) names, from ``start`` to ``stop``."""

    def __init__(self, browser: CDPSession, limit_mb: int) -> None:
        self._browser, self._limit_mb = browser, limit_mb
        self._ended: list[tuple[float, Failure]] = []
        self._pids: set[int] = set()
        self._named: dict[int, str] = {}
        self._blame = Blame(limit_mb)
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
        """Return why a page was ended a moment ago, each time once; None when none was."""
        self._ended = [one for one in self._ended if time.monotonic() - one[0] < _NEWS_S]
        return self._ended.pop(0)[1] if self._ended else None

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_S)
            try:
                told = await self._ask()
            except PlaywrightError as error:
                # It has gone, its pages with it; whoever starts the next browser stops this.
                _LOG.debug("the browser does not name its processes: %s", error)
                continue
            self._named = {one["id"]: one["type"] for one in told["processInfo"]}
            self._end_the_large(self._processes())

    def _processes(self) -> list[Process]:
        return [Process(pid, kind, resident_mb(pid), worked_s(pid)) for pid, kind in self._named.items()]

    async def _ask(self) -> dict[str, Any]:
        """Have Chromium name its processes; where its driver works and works and does not answer, end who floods it.

        A browser that hangs never answers; its episodes have deadlines of their own, and whoever ends it stops this.
        """
        answering = [one for pid, kind in self._named.items() if kind == "browser" for one in (pid, *ancestors(pid))]
        began, before = sum(map(worked_s, answering)), self._processes()
        asked = asyncio.ensure_future(self._browser.send("SystemInfo.getProcessInfo"))
        try:
            while not (await asyncio.wait({asked}, timeout=_CHECK_S))[0]:
                worked = sum(map(worked_s, answering)) - began
                if worked >= _FLOODED_S and (pid := busiest(before, self._processes(), _LEAST_PART * worked)):
                    said = f"browser and driver worked for {worked:.1f} s without an answer while the page worked most"
                    self._end(pid, codes.PAGE_FLOOD, said)
                    break
            return await asked
        finally:
            asked.cancel()

    def _end_the_large(self, processes: Sequence[Process]) -> None:
        renderers = {one.pid: one for one in processes if one.kind == "renderer"}
        self._pids &= set(renderers)
        for pid in set(renderers) - self._pids:
            if (held_mb := renderers[pid].held_mb) > self._limit_mb:
                self._end_for_memory(pid, f"the page's process held {held_mb} MB")
        blamed = self._blame.look(processes)
        if blamed is not None and blamed[0] not in self._pids:
            self._end_for_memory(*blamed)

    def _end_for_memory(self, pid: int, why: str) -> None:
        self._end(pid, codes.PAGE_MEMORY, f"{why}; browser.page_memory_mb is {self._limit_mb}")

    def _end(self, pid: int, code: FailureCode, detail: str) -> None:
        _LOG.warning("process %d is ended: %s", pid, detail)
        # Told first: the news of its end must find the reason.
        self._ended.append((time.monotonic(), Failure(code, detail)))
        self._pids.add(pid)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            self._ended.pop()
