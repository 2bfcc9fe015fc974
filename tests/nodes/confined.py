"""Starts a command that sees its own root and the machine's software, and neither other nodes' roots nor the sources.

``python tests/nodes/confined.py ROOT FORBIDDEN… -- COMMAND…``. The kernel refuses (Landlock, which needs no rights),
also what C++ and Rust open, so that a path of another node fails here as on another machine. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""Numbers of the system calls, on every architecture."""
_NEW_PRIVILEGES = 38
_RIGHTS = (1 << 14) - 1
"""Reading, writing, executing, making, removing and renaming: the rights of Landlock's second version."""
_OF_FILES = 0b111
_TRUNCATE = 1 << 14


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled", ctypes.c_uint64),)


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


_kernel = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return which version of Landlock the kernel has, 0 where it has none."""
    return max(0, int(_kernel.syscall(_CREATE, None, ctypes.c_size_t(0), 1)))


def confine(root: Path, forbidden: Sequence[Path]) -> None:
    """Let this process and its children open nothing below ``forbidden`` but what is in ``root``."""
    rights = _RIGHTS | (_TRUNCATE if version() >= 3 else 0)
    rules = _checked(_kernel.syscall(_CREATE, ctypes.byref(_Ruleset(rights)), ctypes.c_size_t(8), 0))
    for path in (*_beside(Path("/"), [path.resolve() for path in forbidden]), root):
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # a file that ended meanwhile
        allowed = rights if path.is_dir() else rights & (_OF_FILES | _TRUNCATE)
        try:
            _checked(_kernel.syscall(_ADD, rules, 1, ctypes.byref(_Beneath(allowed, opened)), 0))
        finally:
            os.close(opened)
    _checked(_kernel.prctl(_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(_kernel.syscall(_RESTRICT, rules, 0))
    os.close(rules)


def _beside(folder: Path, forbidden: Sequence[Path]) -> Iterator[Path]:
    """Yield what lies in ``folder`` and holds nothing that is forbidden."""
    for path in folder.iterdir():
        if path.is_symlink() or path in forbidden:
            continue
        if any(path in one.parents for one in forbidden):
            yield from _beside(path, forbidden)
        else:
            yield path


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


if __name__ == "__main__":
    at = sys.argv.index("--")
    confine(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:at]])
    os.execvp(sys.argv[at + 1], sys.argv[at + 1 :])
