"""Site leases as episodes use them: waiting with a deadline, resets in the background, leases that run out.

Owns the asyncio rim of ``leases.SiteLedger`` in one process and the tasks that reset deployments. Invariants:
every wait and every lease ends; a reset that failed is told to the episodes that can only wait for it, as
``infra/reset_failed``; a reset that nobody waits for is not begun.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

from environments.webarena.leases.ledger import NoUnit, SiteLedger
from environments.webarena.leases.units import Mode, SiteLease
from environments.webarena.reset.protocol import Resetter
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

_LOG = logging.getLogger(__name__)


class SiteLeases(Protocol):
    """What an environment asks of the leases; one service serves all environments that share the sites."""

    async def acquire(self, modes: Mapping[str, Mode], timeout_s: float) -> SiteLease:
        """Wait for the sites; raise ``EpisodeFailed`` where they cannot be had in time, or at all."""
        ...

    def holds(self, lease: SiteLease) -> bool:
        """Whether the lease is still valid."""
        ...

    def release(self, lease: SiteLease, wrote: Iterable[str] = ()) -> None:
        """Give the sites back, naming those that were changed although they were only to be read."""
        ...

    async def close(self) -> None:
        """End all waiting, within a finite time; leases that are out may still be given back."""
        ...


class LeaseDesk:
    """``SiteLeases`` for the environments of one process (and one event loop)."""

    def __init__(self, ledger: SiteLedger, resetters: Mapping[str, Resetter], *, hold_s: float) -> None:
        """Reset unit ``name`` with ``resetters[name]``; take leases back after ``hold_s`` seconds."""
        self._ledger, self._resetters, self._hold_s = ledger, resetters, hold_s
        self._asked: dict[int, asyncio.Future[SiteLease]] = {}
        self._held: dict[int, asyncio.TimerHandle] = {}
        self._resets: set[asyncio.Task[None]] = set()

    async def acquire(self, modes: Mapping[str, Mode], timeout_s: float) -> SiteLease:
        """Wait for the sites.

        Raises:
            EpisodeFailed: ``task/no_site`` where no deployment can ever serve the request, ``infra/lease_timeout``,
                ``infra/reset_failed``, or ``infra/leases_closed``.
        """
        try:
            number = self._ledger.ask(modes)
        except NoUnit as error:
            closed = Failure(codes.LEASES_CLOSED, str(error))
            impossible = Failure(codes.NO_SITE, str(error))
            raise EpisodeFailed(closed if self._ledger.draining else impossible) from error
        future = self._asked[number] = asyncio.get_running_loop().create_future()
        taken = False
        try:
            self._turn()
            async with asyncio.timeout(timeout_s):
                lease = await future
            taken = True
            return lease
        except TimeoutError as error:
            detail = f"no lease of {', '.join(modes)} within {timeout_s:g} s: {self._ledger.describe()}"
            raise EpisodeFailed(Failure(codes.LEASE_TIMEOUT, detail)) from error
        finally:
            self._asked.pop(number, None)
            self._ledger.withdraw(number)
            if not taken and future.done() and not future.cancelled() and future.exception() is None:
                self.release(future.result())  # granted at the moment in which the waiting ended
            self._turn()

    def holds(self, lease: SiteLease) -> bool:
        """Whether the lease is still valid."""
        return lease.lease_id in self._held

    def release(self, lease: SiteLease, wrote: Iterable[str] = ()) -> None:
        """Give the sites back; no effect on a lease that was given or taken back before."""
        timer = self._held.pop(lease.lease_id, None)
        if timer is not None:
            timer.cancel()
        self._ledger.release(lease, wrote)
        self._turn()

    async def close(self) -> None:
        """Refuse all requests and end the resets that are under way; the leases that are out may still come back."""
        for number in self._ledger.drain():
            self._fail(number, Failure(codes.LEASES_CLOSED, "the worker is stopping"))
        for task in self._resets:
            task.cancel()
        if self._resets:
            await asyncio.wait(self._resets)

    def _turn(self) -> None:
        """Hand out what can be handed out, and begin the resets that somebody waits for."""
        for lease in self._ledger.grant():
            loop = asyncio.get_running_loop()
            self._held[lease.lease_id] = loop.call_later(self._hold_s, self._take_back, lease)
            future = self._asked.get(lease.lease_id)
            if future is None or future.done():
                self.release(lease)
            else:
                future.set_result(lease)
        for unit in self._ledger.to_reset():
            self._ledger.begin_reset(unit)
            task = asyncio.create_task(self._resetters[unit].reset(unit))
            self._resets.add(task)
            task.add_done_callback(lambda done, unit=unit: self._reset_ended(unit, done))  # type: ignore[misc]

    def _reset_ended(self, unit: str, task: asyncio.Task[None]) -> None:
        self._resets.discard(task)
        error = None if task.cancelled() else task.exception()
        done = not task.cancelled() and error is None
        stranded = self._ledger.end_reset(unit, done=done)
        if done:
            _LOG.info("deployment %s was reset", unit)
            self._turn()
            return
        detail = error.failure.detail if isinstance(error, EpisodeFailed) else repr(error or "cancelled")
        _LOG.warning("deployment %s was not reset: %s", unit, detail)
        for number in stranded:
            self._fail(number, Failure(codes.RESET_FAILED, f"{unit}: {detail}"))

    def _take_back(self, lease: SiteLease) -> None:
        """End a lease whose episode kept it for too long; what it may have changed is not known."""
        _LOG.warning("lease of %s taken back after %g s", ", ".join(sorted(lease.names)), self._hold_s)
        self.release(lease, lease.units)

    def _fail(self, number: int, failure: Failure) -> None:
        self._ledger.withdraw(number)
        future = self._asked.get(number)
        if future is not None and not future.done():
            future.set_exception(EpisodeFailed(failure))
