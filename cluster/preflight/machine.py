"""What this machine has: cores, memory, shared memory, GPUs, as far as this process may use them.

Owns reading the machine without torch or ray. Invariant: a container's limits count, not the host's size.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

MIB = 1024 * 1024
_LOOK_LIMIT_S = 10.0
"""Fixed: nvidia-smi answers within a second, unless its driver hangs."""
_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Machine:
    """Usable resources: ``cores`` (fractions under a container quota), memory in MiB, NVIDIA ``gpus``.

    ``gpu_memory_mb`` is the smallest of these GPUs' memory, None where it cannot be asked for.
    """

    cores: float
    memory_mb: int
    available_mb: int
    shared_memory_mb: int | None
    gpus: int
    gpu_memory_mb: int | None = None

    @classmethod
    def here(cls) -> Machine:
        """Return the machine this process runs on, within its container's limits."""
        total, available = _memory_mb()
        limit, used = _cgroup_memory_mb()
        if limit is not None and limit < total:
            total, available = limit, min(available, max(0, limit - used))
        gpus = _gpus()
        return cls(_cores(), total, available, _shared_memory_mb(), gpus, _gpu_memory_mb() if gpus else None)


def _cores() -> float:
    affinity = getattr(os, "sched_getaffinity", None)
    cores = float(len(affinity(0))) if affinity else float(os.cpu_count() or 1)
    quota = _words(_CGROUP / "cpu.max")
    if len(quota) == 2 and quota[0].isdigit():
        cores = min(cores, int(quota[0]) / int(quota[1]))
    return cores


def _memory_mb() -> tuple[int, int]:
    """Return (total, available) in MiB."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES") // MIB
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith("MemAvailable:"):
            return total, int(line.split()[1]) // 1024
    return total, total


def _cgroup_memory_mb() -> tuple[int | None, int]:
    """Return (limit or None, used) in MiB of the container this process is in."""
    limit, used = _words(_CGROUP / "memory.max"), _words(_CGROUP / "memory.current")
    if not limit or not limit[0].isdigit():
        return None, 0
    reclaimable = sum(
        int(line.split()[1]) for line in _lines(_CGROUP / "memory.stat") if line.startswith("inactive_file ")
    )
    return int(limit[0]) // MIB, max(0, int(used[0]) - reclaimable) // MIB if used else 0


def _shared_memory_mb() -> int | None:
    folder = Path("/dev/shm")
    return shutil.disk_usage(folder).total // MIB if folder.is_dir() else None


def _gpus() -> int:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([name for name in visible.split(",") if name.strip() not in {"", "-1"}])
    gpus = Path("/proc/driver/nvidia/gpus")
    return len(list(gpus.iterdir())) if gpus.is_dir() else 0


def _gpu_memory_mb() -> int | None:
    asked = ["nvidia-smi", "--query-gpu=index,uuid,memory.total", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=_LOOK_LIMIT_S, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return smallest_gpu_mb(answer, os.environ.get("CUDA_VISIBLE_DEVICES"))


def smallest_gpu_mb(table: str, visible: str | None) -> int | None:
    """Return the least memory among the ``visible`` GPUs (None: all) in ``table``: lines of index, UUID and MiB."""
    rows = [[cell.strip() for cell in line.split(",")] for line in table.splitlines()]
    names = None if visible is None else {name.strip() for name in visible.split(",")}
    found = [
        int(row[2])
        for row in rows
        if len(row) == 3 and row[2].isdigit() and (names is None or names & {row[0], row[1]})
    ]
    return min(found, default=None)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []


def _words(path: Path) -> list[str]:
    return " ".join(_lines(path)).split()
