"""One lease desk for many processes: who asked for which lease, and what becomes of it when that process is gone.

Owns ``SharedDesk`` and the records that cross to it. Invariants: a process that was silent for too long loses its
leases, and what it may have changed is reset; a lease that its process does not know of is given back; every
call may be repeated or lost without a lease being lost or given twice. Must not import ray.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from environments.webarena.leases.desk import LeaseDesk
from environments.webarena.leases.units import Mode, SiteLease
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OwnerReport:
    """What a process (``owner``) says of its requests, which it numbers from 1 up.

    ``asked`` wait and ``held`` were granted; ``ended`` are given back, each with the sites that were changed
    although they were only to be read. Requests up to number ``up_to`` that are in none of them are of no use to it.
    """

    owner: str
    up_to: int
    asked: frozenset[int] = frozenset()
    held: frozenset[int] = frozenset()
    ended: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class _Owner:
    silence: asyncio.TimerHandle
    waiting: dict[int, asyncio.Task[SiteLease]] = field(default_factory=dict)
    held: dict[int, SiteLease] = field(default_factory=dict)


class SharedDesk:
    """A ``LeaseDesk`` that answers several processes; lives in one process and one event loop."""

    def __init__(self, desk: LeaseDesk, *, silence_s: float) -> None:
        """Take a process that says nothing for ``silence_s`` seconds for dead."""
        self._desk, self._silence_s = desk, silence_s
        self._owners: dict[str, _Owner] = {}

    async def acquire(
        self, owner: str, number: int, modes: Mapping[str, Mode], timeout_s: float
    ) -> SiteLease | Failure:
        """Wait for the sites on behalf of an owner's request; return the lease, or why there is none."""
        known = self._hear(owner)
        task = known.waiting[number] = asyncio.ensure_future(self._desk.acquire(modes, timeout_s))
        granted = None
        try:
            await asyncio.wait({task})
            if task.cancelled():
                return Failure(codes.LEASE_LOST, f"{owner} dropped the request, or was silent for too long")
            error = task.exception()
            if isinstance(error, EpisodeFailed):
                return error.failure
            granted = task.result()
            return granted
        finally:
            task.cancel()  # no effect on a task that is done
            known.waiting.pop(number, None)
            if granted is not None and self._owners.get(owner) is known:
                known.held[number] = granted
            elif granted is not None:
                self._desk.release(granted)

    async def report(self, report: OwnerReport) -> frozenset[int]:
        """Note what an owner says; return those of its ``held`` that it no longer has."""
        known = self._hear(report.owner)
        for number, wrote in report.ended.items():
            self._end(known, number, wrote)
        used = report.asked | report.held
        for number in {*known.waiting, *known.held} - used:
            if number <= report.up_to:
                self._end(known, number, ())
        lost = frozenset(
            number for number in report.held if number not in known.held or not self._desk.holds(known.held[number])
        )
        for number in lost:
            known.held.pop(number, None)
        if not (known.waiting or known.held):
            known.silence.cancel()
            del self._owners[report.owner]
        return lost

    async def close(self) -> None:
        """Refuse all requests and end the resets that are under way."""
        await self._desk.close()
        for known in self._owners.values():
            known.silence.cancel()

    def _hear(self, owner: str) -> _Owner:
        """Take note of a sign of life."""
        timer = asyncio.get_running_loop().call_later(self._silence_s, self._silent, owner)
        known = self._owners.get(owner)
        if known is None:
            known = self._owners[owner] = _Owner(timer)
        else:
            known.silence.cancel()
            known.silence = timer
        return known

    def _end(self, known: _Owner, number: int, wrote: tuple[str, ...]) -> None:
        task, lease = known.waiting.pop(number, None), known.held.pop(number, None)
        if task is not None:
            task.cancel()
        if lease is not None:
            self._desk.release(lease, wrote)

    def _silent(self, owner: str) -> None:
        """Take everything back from a process that is gone; what its episodes changed is not known."""
        known = self._owners.pop(owner)
        if not (known.held or known.waiting):
            return
        _LOG.warning(
            "%s said nothing for %g s: %d leases taken back, %d requests dropped",
            owner, self._silence_s, len(known.held), len(known.waiting),
        )  # fmt: skip
        for task in known.waiting.values():
            task.cancel()
        for lease in known.held.values():
            self._desk.release(lease, lease.units)
