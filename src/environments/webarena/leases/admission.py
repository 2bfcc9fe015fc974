"""Admission to WebArena's sites: episodes ask for the sites of their task, and get a lease on them or wait.

Owns the driver's use of ``SiteLedger``: who waits for which lease, how long a lease is kept, and when resets begin.
Invariants: the ledger is touched by the caller's thread only, resets run in ``Resets``; a lease that comes back from a
lost worker, or not in time, is released as one that wrote; a reset that failed is told to the oldest of those who can
only wait for it, as ``infra/reset_failed``; a reset that nobody waits for is not begun.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from environments.environment import Grant
from environments.webarena.leases.ledger import NoUnit, SiteLedger
from environments.webarena.leases.modes import site_modes
from environments.webarena.leases.units import SiteLease
from environments.webarena.sites.table import WEBARENA_SITES, SiteTable
from records import failure_codes as codes
from records.episodes import Task
from records.failures import Failure

_LOG = logging.getLogger(__name__)
TAKE_BACK_S = 60.0
"""Fixed: how much later than its world the driver counts a lease as kept too long; the way to a slot takes less."""


class Resetting(Protocol):
    """What begins resets and says which have ended; see ``Resets``."""

    def begin(self, unit: str) -> None:
        """Begin the reset of a unit."""
        ...

    def ended(self) -> list[tuple[str, str]]:
        """Return the units whose reset has ended since, each with what went wrong ("" where nothing did)."""
        ...


class SiteAdmission:
    """An ``Admission`` over one ledger."""

    def __init__(
        self,
        ledger: SiteLedger,
        resets: Resetting,
        *,
        hold_s: float,
        writes: Mapping[str, bool] | None = None,
        table: SiteTable = WEBARENA_SITES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take leases back ``TAKE_BACK_S`` after ``hold_s`` seconds; ``writes`` corrects what single tasks change."""
        self._ledger, self._resets, self._clock = ledger, resets, clock
        self._hold_s, self._writes, self._table = hold_s, writes, table
        self._requests: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._failed: dict[str, Failure] = {}
        self._held: dict[int, tuple[float, SiteLease]] = {}
        self._news = False

    def ask(self, request: str, task: Task) -> None:
        """Queue a request for the sites of ``task``; see ``Admission``."""
        if request in self._numbers or request in self._failed:
            return
        try:
            number = self._ledger.ask(site_modes(task, self._writes, self._table))
        except NoUnit as error:
            self._failed[request] = Failure(codes.NO_SITE, str(error))
            return
        self._numbers[request], self._requests[number] = number, request
        self._news = True

    def decided(self, most: int) -> dict[str, Grant | Failure]:
        """Return leases, oldest request first, and the failures of those that get none; see ``Admission``."""
        self._end_resets()
        self._take_back()
        decided: dict[str, Grant | Failure] = {**self._failed}
        self._failed.clear()
        if not self._news:
            return decided
        granted = self._ledger.grant(most)
        for lease in granted:
            self._held[lease.lease_id] = (self._clock() + self._hold_s + TAKE_BACK_S, lease)
            decided[self._forget(lease.lease_id)] = lease
        for unit in self._ledger.to_reset():
            self._ledger.begin_reset(unit)
            self._resets.begin(unit)
        self._news = len(granted) == most
        return decided

    def withdraw(self, request: str) -> None:
        """Take back a request that waits."""
        self._failed.pop(request, None)
        number = self._numbers.get(request)
        if number is not None:
            self._forget(number)
            self._ledger.withdraw(number)
            self._news = True

    def release(self, grant: Grant, *, lost: bool = False) -> None:
        """Give the sites back; those of a ``lost`` episode are reset before anybody else gets them."""
        assert isinstance(grant, SiteLease)
        self._held.pop(grant.lease_id, None)
        self._news |= self._ledger.release(grant, grant.units if lost else grant.wrote)

    def _end_resets(self) -> None:
        for unit, wrong in self._resets.ended():
            stranded = self._ledger.end_reset(unit, done=not wrong)
            self._news = True
            # One for each reset that failed: the others' turn comes with the next, and a run stops over its failures.
            for number in stranded[:1]:
                self._ledger.withdraw(number)
                self._failed[self._forget(number)] = Failure(codes.RESET_FAILED, f"{unit}: {wrong}")

    def _take_back(self) -> None:
        now = self._clock()
        for ends, lease in list(self._held.values()):
            if now >= ends:
                _LOG.warning("sites taken back, kept for more than %g s: %s", self._hold_s, ", ".join(lease.names))
                self.release(lease, lost=True)

    def _forget(self, number: int) -> str:
        request = self._requests.pop(number)
        del self._numbers[request]
        return request
