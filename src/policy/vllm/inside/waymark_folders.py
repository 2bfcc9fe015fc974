"""Folders of a machine's temporary folder in which a worker lays adapters out for vLLM to read.

Owns ``lay_out``, ``forget`` and ``sweep``. Invariants: a folder is locked as long as the process lives that made it, by
the kernel, which frees it with the process however that ends; nobody removes a folder that another process holds; a
folder that could not be made whole is gone. Standard library only.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

_MADE, _BEGUN = "waymark-adapter-", "waymark-begun-"
_HELD: dict[Path, int] = {}
"""Folders of this process, with the open file of each that holds its lock."""


def lay_out(write: Callable[[Path], None]) -> Path:
    """Return a new folder with what ``write`` puts into it; it stays until ``forget``, or the end of this process.

    Raises:
        OSError: it cannot be written; then there is none.
    """
    begun = Path(tempfile.mkdtemp(prefix=_BEGUN))
    # Locked before it has the name that others sweep.
    lock = os.open(begun, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    folder = begun.with_name(begun.name.replace(_BEGUN, _MADE, 1))
    try:
        begun.rename(folder)
        write(folder)
    except BaseException:
        for left in (begun, folder):
            shutil.rmtree(left, ignore_errors=True)
        os.close(lock)
        raise
    _HELD[folder] = lock
    return folder


def forget(folders: Iterable[Path]) -> None:
    """Remove those of ``folders`` that this process has laid out; whatever else is named stays."""
    for folder in folders:
        lock = _HELD.pop(folder, None)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def forget_all() -> None:
    """Remove every folder that this process has laid out and still holds."""
    forget(list(_HELD))


def sweep() -> None:
    """Remove what processes left that are no more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_MADE}*"):
        with suppress(OSError):  # another's, or another process removes it at this moment
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
