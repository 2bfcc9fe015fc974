"""What a store is: immutable objects under keys, and a few small records that are compared and swapped.

Owns ``Store``, what its operations promise, and its errors. Invariants: an object is there whole or not at all, and is
never changed; ``put`` has one winner; a record changes only for whoever names the version that it read; what
``keys`` answers may be late, so nothing that must be true depends on it. Every store passes
``tests/records/stores/contract.py``. Standard library only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

Content = bytes | Path
"""What is put: bytes, or a file's."""
_KEY = re.compile(r"(?!.*(^|/)\.)[\w.\-]+(/[\w.\-]+)*", re.ASCII)


class StoreError(OSError):
    """A store refused, cannot be reached, or holds what it must not; the text names the key and says what to do."""


class MissingKey(StoreError):
    """There is nothing under this key."""


class DamagedObject(StoreError):
    """What lies under a key is not what was put there."""


class RecordChanged(StoreError):
    """Somebody else changed the record since it was read."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it was read; ``version`` is what a swap must name."""

    content: bytes
    version: str


class Store(Protocol):
    """A place for objects and records; every method raises ``StoreError`` where the store does not answer."""

    @property
    def uri(self) -> str:
        """What names the store; holds no credentials."""
        ...

    def put(self, key: str, content: Content) -> bool:
        """Put an object where there is none, durably; return False, and leave what is there, where there is one."""
        ...

    def read(self, key: str) -> bytes:
        """Return an object; raise ``MissingKey``."""
        ...

    def fetch(self, key: str, target: Path) -> None:
        """Write an object to the new file ``target``; raise ``MissingKey``."""
        ...

    def link(self, key: str, valid_s: float) -> str:
        """Return a path or an HTTP URL by which an object can be read without the store's credentials.

        A URL is good for ``valid_s`` seconds.
        """
        ...

    def size(self, key: str) -> int | None:
        """Return an object's size in bytes, None where there is none."""
        ...

    def keys(self, prefix: str) -> list[str]:
        """Return the keys of objects below ``prefix/``, sorted; one that was put just now may not be among them."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object, if there is one."""
        ...

    def record(self, key: str) -> Record | None:
        """Return a record as it is now, None where there is none."""
        ...

    def swap(self, key: str, content: bytes, version: str | None) -> str:
        """Replace the record of this ``version`` (None: there must be none), durably; return the new version.

        Raises:
            RecordChanged: it has another version by now; nothing was written.
        """
        ...


def is_key(text: str) -> bool:
    """Return whether a text may be a key."""
    return _KEY.fullmatch(text) is not None


def checked_key(key: str) -> str:
    """Return ``key``; raise ``ValueError`` where it could lead out of the store, or is hidden."""
    if not is_key(key):
        raise ValueError(
            f"{key!r:.200} is no key of a store: expected names of letters, digits, '.', '-' and '_' with '/' between, "
            "none of which begins with a dot"
        )
    return key
