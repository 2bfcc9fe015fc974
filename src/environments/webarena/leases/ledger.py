"""Who may use which deployment of the sites: a pure ledger of site leases, without clocks, tasks or clients.

Owns the state of every deployment ("unit") between resets. Invariants: a unit has any number of readers or
one writer; after a writer, or a reader that wrote after all, it takes nobody until it has been reset; a
request gets all of its sites at once or waits; requests are served in the order in which they came, as far
as they want the same unit, so none starves; every request ends as a lease or is withdrawn, and every lease
is released once. Must not import asyncio or ray.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from environments.webarena.leases.units import Mode, SiteLease, Unit, UnitState


class NoUnit(LookupError):
    """No unit can ever serve a request; the message says why."""


class SiteLedger:
    """Hands out units to requests; see the module."""

    def __init__(self, units: Mapping[str, Iterable[str]], *, resettable: Iterable[str] = (), fresh: bool) -> None:
        """Take the sites of each unit by its name.

        Units in ``resettable`` begin as ``READY`` where they are ``fresh``, otherwise as ``DIRTY``; the others
        cannot be reset, so they are taken as they are and never given to a writer.
        """
        can = set(resettable)
        self._units = {
            name: Unit(
                name, frozenset(sites), name in can, UnitState.DIRTY if name in can and not fresh else UnitState(0)
            )
            for name, sites in units.items()
        }
        self._waiting: dict[int, dict[str, Mode]] = {}
        self._held: dict[int, SiteLease] = {}
        self._last_id = 0
        self.granted = self.released = 0

    def ask(self, modes: Mapping[str, Mode]) -> int:
        """Queue a request for sites, each with its mode; return its number, which becomes the lease's.

        Raises:
            NoUnit: where no unit has one of the sites, or only units that cannot be reset for one that is written.
        """
        for site, mode in modes.items():
            having = [unit for unit in self._units.values() if site in unit.sites]
            if not having:
                known = "; ".join(f"{unit.name} ({', '.join(sorted(unit.sites))})" for unit in self._units.values())
                raise NoUnit(f"no deployment has the site {site}; there are: {known}")
            if mode is Mode.WRITE and not any(unit.resettable for unit in having):
                raise NoUnit(f"the task changes {site}, and no deployment of it can be reset; configure its reset")
        self._last_id += 1
        self._waiting[self._last_id] = dict(modes)
        return self._last_id

    def withdraw(self, number: int) -> None:
        """Take a request back that waits; no effect on others."""
        self._waiting.pop(number, None)

    def grant(self, most: int | None = None) -> list[SiteLease]:
        """Give requests (``most`` of them, None: all) their units that can have them now, oldest first.

        Return the leases.
        """
        granted: list[SiteLease] = []
        claimed: set[str] = set()
        for number, modes in list(self._waiting.items()):
            if len(granted) == most:
                break
            chosen = self._choose(modes, claimed)
            if any(unit in claimed or not self._units[unit].admits(mode) for unit, mode in chosen.values()):
                claimed.update(unit for unit, _ in chosen.values())
                continue
            written = frozenset(unit for unit, mode in chosen.values() if mode is Mode.WRITE)
            units = {site: unit for site, (unit, _) in chosen.items()}
            epochs = {unit: str(self._units[unit].resets) for unit in units.values()}
            lease = SiteLease(number, units, written, epochs)
            for name in lease.names:
                unit = self._units[name]
                if name in written:
                    unit.writer = number
                else:
                    unit.readers.add(number)
            del self._waiting[number]
            self._held[number] = lease
            self.granted += 1
            granted.append(lease)
        return granted

    def release(self, lease: SiteLease, wrote: Iterable[str] = ()) -> bool:
        """End a lease; ``wrote`` are sites that were changed although they were only to be read.

        False, and no change, where the lease had ended before.
        """
        if self._held.pop(lease.lease_id, None) is None:
            return False
        changed = set(lease.written) | {lease.units[site] for site in wrote if site in lease.units}
        for name in lease.names:
            unit = self._units[name]
            unit.readers.discard(lease.lease_id)
            if unit.writer == lease.lease_id:
                unit.writer = None
            if name in changed and unit.resettable:
                unit.state = UnitState.DIRTY
        self.released += 1
        return True

    def to_reset(self) -> list[str]:
        """Return the units that are dirty, that nobody holds, and that the oldest requests wait for."""
        claimed: set[str] = set()
        for modes in self._waiting.values():
            claimed.update(unit for unit, _ in self._choose(modes, claimed).values())
        return [u.name for u in self._units.values() if u.name in claimed and u.state is UnitState.DIRTY and u.idle]

    def begin_reset(self, name: str) -> None:
        """Note that a unit's reset begins; raise ``ValueError`` where it is in use or needs none."""
        unit = self._units[name]
        if unit.state is not UnitState.DIRTY or not unit.idle:
            raise ValueError(f"expected {name} to be dirty and idle, found {unit}")
        unit.state = UnitState.RESETTING

    def end_reset(self, name: str, *, done: bool) -> list[int]:
        """Note how a reset ended; return the waiting requests that only this unit can serve, if it failed."""
        unit = self._units[name]
        if unit.state is not UnitState.RESETTING:
            raise ValueError(f"expected {name} to be resetting, found {unit}")
        unit.state = UnitState.READY if done else UnitState.DIRTY
        unit.resets += done
        if done:
            return []
        return [n for n, modes in self._waiting.items() if any(self._having(s, m) == [unit] for s, m in modes.items())]

    @property
    def resets(self) -> int:
        """How many resets ended well."""
        return sum(unit.resets for unit in self._units.values())

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    @property
    def held(self) -> int:
        """How many leases are out."""
        return len(self._held)

    def _choose(self, modes: Mapping[str, Mode], claimed: set[str]) -> dict[str, tuple[str, Mode]]:
        """Return for each site the unit that the request should have or wait for, and how it will hold it.

        A unit that an older request waits for (``claimed``) is chosen only where there is no other.
        """
        chosen = {site: (self._best(site, mode, claimed).name, mode) for site, mode in modes.items()}
        writers = {unit for unit, mode in chosen.values() if mode is Mode.WRITE}
        return {site: (unit, Mode.WRITE if unit in writers else mode) for site, (unit, mode) in chosen.items()}

    def _best(self, site: str, mode: Mode, claimed: set[str]) -> Unit:
        return min(
            self._having(site, mode), key=lambda unit: (unit.name in claimed, not unit.admits(mode), unit.distance)
        )

    def _having(self, site: str, mode: Mode) -> list[Unit]:
        return [u for u in self._units.values() if site in u.sites and (u.resettable or mode is Mode.READ)]
