"""What surrounds a command that starts processes: its signals, a full disk, and where its warnings go.

Owns the three context managers, which ``waymark train`` and ``waymark eval`` share.
"""

from __future__ import annotations

import errno
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from cluster.errors import RunInterrupted, RunStopped
from records.terminal import printable

LOG = "driver.log"
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO}


@contextmanager
def disk_errors(out: Path, then: str) -> Iterator[None]:
    """Say plainly that the folder ``out`` cannot be written to; ``then`` is what to do once there is space."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK:
            raise
        raise RunStopped(
            f"cannot write {error.filename or f'to {out}'}: {error.strerror}; what is complete is in {out}. Free space "
            f"there, or make it writable, and {then}"
        ) from error


@contextmanager
def file_log(out: Path) -> Iterator[None]:
    """Send warnings and worse of this process to ``OUT/driver.log``, away from the progress display."""
    handler = logging.FileHandler(out / LOG)
    handler.setFormatter(_Printable("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


@contextmanager
def interruptible(said: str) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the command cleanly, with the message ``said``."""

    def stop(number: int, frame: object) -> NoReturn:
        # A second signal must not cut the clean-up short.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt as error:
        raise RunInterrupted(said) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Printable(logging.Formatter):
    """Log lines may quote pages and models, and are read on terminals."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line without anything that a terminal would obey."""
        return printable(super().format(record))
