"""One driver per run folder, and one learner.

Owns ``OUT/run.lock`` and ``OUT/learner.lock``. Invariants: the kernel drops a lock with its process, so a killed one
never leaves a folder locked; of a lost machine a shared file system does so after a time, which is waited for.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from cluster.errors import RunInUse
from records.stores.lease import lives_here, this_machine

logger = logging.getLogger(__name__)

ELSEWHERE_S = 345.0
"""Fixed: a file system keeps a lost machine's lock for up to 300 s (CephFS; NFSv4 90 s); 45 s are the lease's."""
_POLL_S = 0.05
"""Fixed: a pace within the caller's wait."""
_LENGTH = 1024


@dataclass(frozen=True, slots=True)
class _Holder:
    """Who has a lock, as its file says; what it does not say is empty."""

    process: str
    machine: str

    @property
    def here(self) -> bool:
        """Whether it is a process of this machine that runs; the file of an earlier version names no machine."""
        return self.process.isdecimal() and lives_here(self.machine or this_machine(), int(self.process))

    def __str__(self) -> str:
        where = "" if self.here or not self.machine else f" on {self.machine.split()[0]}"
        return f"process {self.process or 'unknown'}{where}"


class RunLock:
    """Context manager that holds a run folder; raises ``RunInUse`` naming the process that has it.

    A lock of a process that runs on this machine is waited for ``wait_s`` seconds, any other at least ``ELSEWHERE_S``:
    ``tell`` is called with what is waited for.
    """

    def __init__(
        self, out: Path, name: str = "run.lock", wait_s: float = 0.0, tell: Callable[[str], object] = logger.warning
    ) -> None:
        self._path = out / name
        self._wait_s = wait_s
        self._tell = tell
        self._descriptor: int | None = None

    def __enter__(self) -> RunLock:
        """Take the lock, or fail when the wait is over."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._take(descriptor)
            os.ftruncate(descriptor, os.pwrite(descriptor, f"{os.getpid()}\n{this_machine()}\n".encode(), 0))
            os.fsync(descriptor)  # should this machine be lost, the next one reads whom it waits for
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the folder back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _take(self, descriptor: int) -> None:
        began, told = time.monotonic(), False
        while not _taken(descriptor):
            holder = _holder(descriptor)
            limit_s = self._wait_s if holder.here else max(self._wait_s, ELSEWHERE_S)
            if time.monotonic() - began >= limit_s:
                lost = "" if holder.here else f", or remove {self._path.name} where that machine is gone"
                raise RunInUse(
                    f"{self._path.parent} is in use by another run ({holder} has {self._path.name}); wait for "
                    f"it or choose another --out{lost}"
                )
            if not holder.here and not told:
                told = True
                self._tell(
                    f"{self._path.parent} is in use by {holder}, which is none of this machine's; waiting at most "
                    f"{limit_s:g} s for its end, or for the file system to drop the lock of a lost machine"
                )
            time.sleep(_POLL_S)


def _taken(descriptor: int) -> bool:
    """Try to lock an open file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> _Holder:
    process, machine, *_ = [*os.pread(descriptor, _LENGTH, 0).decode("utf-8", "replace").splitlines(), "", ""]
    return _Holder(process.strip(), machine.strip())
