"""What ``/proc`` tells of a process: its memory, its work, who started it.

Owns the reading. Where there is no ``/proc`` (not on Linux), or no such process, everything is 0.
"""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")
_PARENT, _USER_TICKS, _SYSTEM_TICKS = 1, 11, 12
"""Places of the fields in ``/proc/PID/stat`` behind the name; see proc(5)."""


def resident_mb(pid: int) -> int:
    """Return the resident memory of a process in MB, shared pages included."""
    try:
        pages = int((_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def worked_s(pid: int) -> float:
    """Return how many seconds of a processor a process has used."""
    fields = _stat(pid)
    return sum(map(int, (fields[_USER_TICKS], fields[_SYSTEM_TICKS]))) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def ancestors(pid: int) -> list[int]:
    """Return the processes between a process and this one, from its parent on; none where it is not of this one."""
    found: list[int] = []
    at = pid
    while (fields := _stat(at)) and (at := int(fields[_PARENT])) != os.getpid():
        found.append(at)
    return found if fields else []


def _stat(pid: int) -> list[str]:
    try:
        return (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
