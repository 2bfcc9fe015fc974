"""A session's changes laid over shared records.

Owns ``Overlay``. Invariants: the base is never touched; making an overlay costs nothing; changed records
keep their place, new ones come last.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class Overlay(Generic[K, R]):
    """Records by key: those of ``base`` unless put or removed here."""

    def __init__(self, base: Mapping[K, R]) -> None:
        self._base = base
        self._own: dict[K, R | None] = {}

    def get(self, key: K) -> R | None:
        """Return the record, None where there is none."""
        return self._own[key] if key in self._own else self._base.get(key)

    def put(self, key: K, record: R) -> None:
        """Add or replace a record."""
        self._own[key] = record

    def remove(self, key: K) -> None:
        """Take a record away."""
        self._own[key] = None

    def all(self) -> list[R]:
        """Return all records in order."""
        if not self._own:
            return list(self._base.values())
        kept = [self._own.get(key, record) for key, record in self._base.items()]
        added = [record for key, record in self._own.items() if key not in self._base]
        return [record for record in (*kept, *added) if record is not None]

    @property
    def added(self) -> int:
        """Number of records that the base does not have."""
        return sum(key not in self._base and record is not None for key, record in self._own.items())
