"""One driver per run folder.

Owns ``OUT/run.lock``. Invariant: the kernel drops the lock with the process, so a killed driver
never leaves a folder locked.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from cluster.errors import ManifestError


class RunLock:
    """Context manager that holds a run folder; raises ``ManifestError`` naming the process that has it."""

    def __init__(self, out: Path) -> None:
        self._path = out / "run.lock"
        self._descriptor: int | None = None

    def __enter__(self) -> RunLock:
        """Take the lock or fail at once."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise ManifestError(
                f"{self._path.parent} is in use by another run (process {holder}); wait for it or choose another --out"
            ) from error
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
