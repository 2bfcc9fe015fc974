"""The right to drive a run: one small record with the driver's epoch, which every commit compares and swaps.

Owns the record and who may write it. Invariants: an epoch has one holder, and epochs only grow; whoever was replaced
finds at its next commit that the record changed, whatever its clock says; a swap of the holder's own that was written
and answered with an error replaces nobody; a holder counts as gone only when its record stood still for as long as the
asker itself looked at it, so no two clocks are compared.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any
from uuid import uuid4

from records.stores.store import Record, RecordChanged, Store, StoreError

logger = logging.getLogger(__name__)

KEY = "lease"
BEAT_S = 10.0
"""Fixed: a pace within ``GONE_S``."""
GONE_S = 45.0
"""Fixed: a driver that lives writes four times in that; one that does not is replaced and can commit nothing more."""
_LOOK_S = 1.0
"""Fixed: a pace within ``GONE_S``."""
_TRIES = 3
"""Fixed: how often a commit may find that an earlier one of the same driver came before it."""


class LeaseHeld(StoreError):
    """Another driver has the run, and lives."""


class LeaseLost(StoreError):
    """Another driver took the run over; nothing of this one counts any more."""


@dataclass(frozen=True, slots=True)
class Head:
    """What the record says: ``holder`` is empty where the run was given back, ``beat`` counts its writings.

    ``machine`` names the holder's machine and its process ids' space; ``newest`` is the digest of the run's newest
    snapshot, and ``weights`` what its policy servers serve, where these are kept in the store.
    """

    epoch: int
    holder: str
    machine: str
    process: int
    beat: int = 0
    newest: str = ""
    weights: dict[str, Any] | None = None


class RunLease:
    """The lease of the run in ``store``; taken by ``take``, written by ``commit``, given back by ``give_back``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._busy = Lock()
        self._head: Head | None = None
        self._version: str | None = None

    @property
    def head(self) -> Head:
        """What this driver wrote last; raise ``LeaseLost`` where it has not taken the lease."""
        if self._head is None:
            raise LeaseLost(f"{self._store.uri}: this process has not taken the run's lease")
        return self._head

    def take(self, *, alone: bool = False, gone_s: float = GONE_S) -> Head:
        """Take the run over under the next epoch, and return what its record says then.

        ``alone`` says that no other process of this machine can drive it. A holder that may live is watched for
        ``gone_s`` seconds.

        Raises:
            LeaseHeld: it lives, or somebody else was quicker.
        """
        found = self._store.record(KEY)
        before = None if found is None else _read(self._store, found)
        if found is not None and before is not None and _may_live(before, alone):
            logger.info("waiting for a sign of life of %s, at most %g s", before.holder, gone_s)
            self._require_silence(found, before, gone_s)
        head = Head(
            epoch=1 if before is None else before.epoch + 1,
            holder=f"process {os.getpid()} on {platform.node()} ({uuid4().hex[:8]})",
            machine=this_machine(),
            process=os.getpid(),
            newest="" if before is None else before.newest,
        )
        try:
            version = self._store.swap(KEY, _written(head), None if found is None else found.version)
        except RecordChanged as error:
            raise LeaseHeld(
                f"{self._store.uri} was taken by another driver at this moment; let that one work"
            ) from error
        self._head, self._version = head, version
        return head

    def commit(self, **changes: Any) -> Head:
        """Write the record again with these fields changed, and one beat more.

        A commit that raised anything but ``LeaseLost`` may have been written; the next one takes it back.

        Raises:
            LeaseLost: another driver has the run; nothing was written.
        """
        with self._busy:
            head = replace(self.head, **changes, beat=self.head.beat + 1)
            for left in reversed(range(_TRIES)):
                try:
                    self._version = self._store.swap(KEY, _written(head), self._version)
                    break
                except RecordChanged as error:
                    found = self._store.record(KEY)
                    before = self._own(found)
                    if found is None or before is None:
                        raise self._lost(found) from error
                    if not left:
                        raise
                    # No content is written twice: an object store may name versions by it.
                    self._version, head = found.version, replace(head, beat=before.beat + 1)
            self._head = head
            return head

    def check(self) -> None:
        """Raise ``LeaseLost`` where another driver has the run by now."""
        with self._busy:
            found = self._store.record(KEY)
            if self._own(found) is None:
                raise self._lost(found)

    def give_back(self) -> None:
        """Let the next driver take the run at once; nothing happens where another one already has.

        Where the store does not answer, that is logged, and the next driver waits for signs of life.
        """
        try:
            self.commit(holder="", weights=None)
        except StoreError as error:
            logger.warning("%s", error)
        self._head = None

    def _require_silence(self, found: Record, before: Head, gone_s: float) -> None:
        ends = time.monotonic() + gone_s
        while time.monotonic() < ends:
            time.sleep(min(_LOOK_S, gone_s))
            now = self._store.record(KEY)
            if now is None or now.version != found.version:
                raise LeaseHeld(
                    f"{self._store.uri} is in use by another driver ({before.holder}), which writes to it; wait "
                    "for it, end it, or choose another --out"
                )

    def _own(self, found: Record | None) -> Head | None:
        """Return what a record says if this driver wrote it."""
        if self._head is None or found is None:
            return None
        head = _read(self._store, found)
        return head if (head.epoch, head.holder) == (self._head.epoch, self._head.holder) else None

    def _lost(self, found: Record | None) -> LeaseLost:
        other = "nobody" if found is None else _read(self._store, found).holder or "a driver that has ended since"
        return LeaseLost(
            f"{self._store.uri} was taken over by {other}, because this process gave no sign of life; nothing that it "
            "does counts any more"
        )


def read_head(store: Store) -> Head | None:
    """Return what a run's record says now, None where no driver ever had the run."""
    found = store.record(KEY)
    return None if found is None else _read(store, found)


def this_machine() -> str:
    """Return what names this machine since it was started, and the space of its process ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{platform.node()} {boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def lives_here(machine: str, process: int) -> bool:
    """Return whether a process of ``machine`` is one of this machine that runs, as far as this machine can tell."""
    return machine == this_machine() and (" " not in machine or Path(f"/proc/{process}").exists())


def _may_live(before: Head, alone: bool) -> bool:
    """Return whether the holder may still be there, as far as this machine can tell."""
    if not before.holder:
        return False
    if before.machine != this_machine():
        return True
    return not alone and lives_here(before.machine, before.process)


def _written(head: Head) -> bytes:
    return (json.dumps(asdict(head), sort_keys=True) + "\n").encode()


def _read(store: Store, record: Record) -> Head:
    try:
        head = Head(**json.loads(record.content))
        numbers, texts = (head.epoch, head.process, head.beat), (head.holder, head.machine, head.newest)
        if any(type(one) is not int for one in numbers) or any(type(one) is not str for one in texts):
            raise ValueError("its numbers are none, or its names no texts")
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreError(
            f"{store.uri}: {KEY} is no lease of a run ({error}); remove it if no driver works there"
        ) from error
    return head
