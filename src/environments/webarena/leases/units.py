"""What is leased: a deployment of the sites ("unit") with its holders, and the lease itself.

Owns the records of ``leases.SiteLedger``; who gets what is decided there. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from environments.environment import Grant


class Mode(StrEnum):
    """What an episode does to a site."""

    READ = "read"
    WRITE = "write"


class UnitState(IntEnum):
    """Whether a unit's sites are as they were at first; ordered by how soon a unit can be used."""

    READY = 0
    RESETTING = 1
    DIRTY = 2


@dataclass(frozen=True, slots=True)
class SiteLease(Grant):
    """The right to use ``units[site]`` for each site; ``written`` names the units that are held alone.

    ``epochs`` says for each unit since which reset it is what it is: what was stored in another epoch is void. The
    episode notes in ``wrote`` which sites it changed although it had them only to read.
    """

    lease_id: int
    units: Mapping[str, str]
    written: frozenset[str]
    epochs: Mapping[str, str]
    wrote: set[str] = field(default_factory=set)

    @property
    def names(self) -> frozenset[str]:
        """The units that are held."""
        return frozenset(self.units.values())


@dataclass(slots=True)
class Unit:
    """One deployment in the ledger: who holds it, in which state it is, and how many of its resets ended well."""

    name: str
    sites: frozenset[str]
    resettable: bool
    state: UnitState
    readers: set[int] = field(default_factory=set)
    writer: int | None = None
    resets: int = 0

    def admits(self, mode: Mode) -> bool:
        """Whether one more may have it now, in this mode."""
        free = self.state is UnitState.READY and self.writer is None
        return free and (mode is Mode.READ or not self.readers)

    @property
    def idle(self) -> bool:
        """Whether nobody holds it."""
        return self.writer is None and not self.readers

    @property
    def distance(self) -> tuple[bool, int, int]:
        """How far it is from being free, for comparisons."""
        return self.writer is not None, self.state, len(self.readers)
