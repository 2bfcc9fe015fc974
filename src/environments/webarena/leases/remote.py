"""Site leases of a desk in another process, as the environments of this one use them.

Owns ``RemoteLeases`` and the ``DeskPort`` behind which the desk is. Invariants: a lease counts as held only as long
as the desk has lately confirmed it, and never longer than the desk keeps it for a silent process; a lease that was
given back is reported until the desk has heard of it; every wait ends. Must not import ray.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from environments.webarena.leases.shared import OwnerReport
from environments.webarena.leases.units import Mode, SiteLease
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

_LOG = logging.getLogger(__name__)
_REPORTS_A_SILENCE = 4


class DeskPort(Protocol):
    """The way to a ``SharedDesk``; raises ``EpisodeFailed(infra/leases_unreachable)`` where nobody answers in time."""

    async def acquire(
        self, owner: str, number: int, modes: Mapping[str, Mode], timeout_s: float
    ) -> SiteLease | Failure:
        """See ``SharedDesk.acquire``."""
        ...

    async def report(self, report: OwnerReport) -> frozenset[int]:
        """See ``SharedDesk.report``."""
        ...


class RemoteLeases:
    """``SiteLeases`` over a port; the leases that it returns are numbered by itself."""

    def __init__(
        self, port: DeskPort, *, owner: str, silence_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Report as ``owner``, a name that no other process has had; ``silence_s`` is the desk's."""
        self._port, self._owner, self._silence_s, self._clock = port, owner, silence_s, clock
        self._last = 0
        self._asked: set[int] = set()
        self._held: dict[int, SiteLease] = {}
        self._ended: dict[int, tuple[str, ...]] = {}
        self._heard_at = float("-inf")
        self._news = asyncio.Event()
        self._reporter: asyncio.Task[None] | None = None
        self._closed = False

    async def acquire(self, modes: Mapping[str, Mode], timeout_s: float) -> SiteLease:
        """Wait for the sites; see ``LeaseDesk.acquire``, and ``infra/leases_unreachable``."""
        if self._closed:
            raise EpisodeFailed(Failure(codes.LEASES_CLOSED, "the worker is stopping"))
        self._last += 1
        number = self._last
        self._asked.add(number)
        self._keep_reporting()
        sent = self._clock()
        try:
            answer = await self._port.acquire(self._owner, number, modes, timeout_s)
            if isinstance(answer, Failure):
                raise EpisodeFailed(answer)
            self._heard_at = max(self._heard_at, sent)
            self._held[number] = lease = replace(answer, lease_id=number)
            return lease
        finally:
            self._asked.discard(number)
            self._news.set()

    def holds(self, lease: SiteLease) -> bool:
        """Whether the lease is still valid."""
        return lease.lease_id in self._held and self._clock() - self._heard_at < self._silence_s

    def release(self, lease: SiteLease, wrote: Iterable[str] = ()) -> None:
        """Give the sites back; no effect on a lease that was given or taken back before."""
        if self._held.pop(lease.lease_id, None) is not None:
            self._ended[lease.lease_id] = tuple(wrote)
            self._keep_reporting()
            self._news.set()

    async def close(self) -> None:
        """Take no further requests and give everything back, if the desk can be reached."""
        self._closed = True
        if self._reporter is not None:
            self._reporter.cancel()
            await asyncio.wait({self._reporter})
        self._asked.clear()
        for lease in list(self._held.values()):
            self._held.pop(lease.lease_id)
            self._ended[lease.lease_id] = tuple(lease.units)
        if self._ended:
            await self._report()

    def _keep_reporting(self) -> None:
        if self._reporter is None or self._reporter.done():
            self._reporter = asyncio.create_task(self._report_until_nothing_is_left())
            self._reporter.add_done_callback(_tell_of_a_bug)

    async def _report_until_nothing_is_left(self) -> None:
        while self._asked or self._held or self._ended:
            self._news.clear()
            await self._report()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._silence_s / _REPORTS_A_SILENCE):
                    await self._news.wait()

    async def _report(self) -> None:
        sent = self._clock()
        report = OwnerReport(self._owner, self._last, frozenset(self._asked), frozenset(self._held), dict(self._ended))
        try:
            lost = await self._port.report(report)
        except EpisodeFailed as error:
            _LOG.warning("the lease desk did not hear of %d leases: %s", len(self._held), error)
            return
        self._heard_at = max(self._heard_at, sent)
        for number in report.ended:
            self._ended.pop(number, None)
        for number in lost:
            self._held.pop(number, None)


def _tell_of_a_bug(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        _LOG.error("reporting to the lease desk ended; leases run out with it", exc_info=error)
