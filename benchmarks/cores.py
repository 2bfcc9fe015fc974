"""How many cores a benchmark uses, and how much memory its browsers take.

Owns the two questions that every speed depends on. Reads ``/proc``; elsewhere the answers are less.
"""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.process_tree import descendants


def keep_to(cores: int) -> int:
    """Let this process and all it starts use ``cores`` cores at most; return how many it has."""
    if not hasattr(os, "sched_setaffinity"):
        return os.cpu_count() or 1
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    return len(os.sched_getaffinity(0))


def browser_memory_mb() -> float:
    """Return what all Chromium processes below this one hold, in MB; what several share is divided among them."""
    found = descendants(os.getpid()).items()
    return sum(_share_mb(pid) for pid, line in found if "--headless" in line or "--type=" in line)


def _share_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:  # it ended meanwhile
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
