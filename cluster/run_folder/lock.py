"""One driver per run folder, and one learner.

Owns ``OUT/run.lock`` and ``OUT/learner.lock``. Invariant: the kernel drops a lock with its process, so a
killed one never leaves a folder locked.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType

from cluster.errors import ManifestError

_POLL_S = 0.05
"""Fixed: a pace within the caller's wait."""


class RunLock:
    """Context manager that holds a run folder; raises ``ManifestError`` naming the process that has it.

    A lock that another process has is waited for ``wait_s`` seconds.
    """

    def __init__(self, out: Path, name: str = "run.lock", wait_s: float = 0.0) -> None:
        self._path = out / name
        self._wait_s = wait_s
        self._descriptor: int | None = None

    def __enter__(self) -> RunLock:
        """Take the lock, or fail when the wait is over."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        ends = time.monotonic() + self._wait_s
        while not _taken(descriptor):
            if time.monotonic() >= ends:
                holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
                os.close(descriptor)
                raise ManifestError(
                    f"{self._path.parent} is in use by another run (process {holder} has {self._path.name}); wait for "
                    "it or choose another --out"
                )
            time.sleep(_POLL_S)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the folder back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _taken(descriptor: int) -> bool:
    """Try to lock an open file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
