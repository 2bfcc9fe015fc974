"""The processes that a worker starts: how they are found again, however they were detached.

Owns the mark in their environment, the search for marked processes and their killing. Invariants: only processes that
carry Waymark's mark are ever killed, and only those whose owner is gone or asks for it; an owner is a
process id with its start time, so a reused id is not mistaken for it. Works where there is a
``/proc`` (Linux); elsewhere nothing is found.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from records.child_environment import inherited

MARK = "WAYMARK_BROWSER_OWNER"
"""Environment variable that children inherit: ``pid:start time in ticks`` of the worker that owns them."""

_PROC = Path("/proc")
_LOOKS = 100
"""How often at most what has come since the last look is looked at, where processes start without end."""
_LOOK_AGAIN_S = 0.05
"""Until then a process that was forked runs its own program, and one that was killed is gone."""
_SOURCES = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class MarkedProcess:
    """A living process that carries a mark."""

    pid: int
    owner: str
    command: str

    @property
    def orphaned(self) -> bool:
        """Whether the worker that owns it is gone."""
        pid = int(self.owner.partition(":")[0])
        return process_mark(pid) != self.owner


def process_mark(pid: int) -> str | None:
    """Return the mark that a process puts on its children, or None when there is no such process."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in ("Z", "X") else f"{pid}:{fields[18]}"


def mark_children() -> str:
    """Let every process that this one starts from now on carry its mark; return the mark."""
    mark = process_mark(os.getpid()) or f"{os.getpid()}:0"
    os.environ[MARK] = mark
    return mark


def unmark_children() -> None:
    """Let what this process starts from now on carry no mark: it is nobody's to kill."""
    os.environ.pop(MARK, None)


def all_marked() -> list[MarkedProcess]:
    """Return the living marked processes on this machine, whoever owns them.

    One that goes on in a new process while they are looked through is found as the new one: what has come meanwhile is
    looked at too.
    """
    found: list[MarkedProcess] = []
    seen: set[int] = set()
    for _ in range(_LOOKS):
        new = {int(folder.name) for folder in _PROC.glob("[0-9]*")} - seen
        if not new:
            break
        seen |= new
        found += [process for pid in sorted(new) if (process := _marked(pid)) is not None]
    return found


def _marked(pid: int) -> MarkedProcess | None:
    folder, prefix = _PROC / str(pid), f"{MARK}=".encode()
    try:
        variables = (folder / "environ").read_bytes().split(b"\0")
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:  # it ended meanwhile, or belongs to somebody else
        return None
    owner = next((v[len(prefix) :].decode(errors="replace") for v in variables if v.startswith(prefix)), None)
    return MarkedProcess(pid, owner, command) if owner else None


def marked_processes(owner: str) -> list[MarkedProcess]:
    """Return the living processes on this machine that carry this owner's mark."""
    return [process for process in all_marked() if process.owner == owner]


def orphans() -> list[MarkedProcess]:
    """Return the marked processes whose worker is gone."""
    return [process for process in all_marked() if process.orphaned]


def kill(processes: list[MarkedProcess]) -> int:
    """Kill these processes and return how many were still there."""
    killed = 0
    for process in processes:
        try:
            os.kill(process.pid, signal.SIGKILL)
            killed += 1
        except ProcessLookupError:
            continue
    return killed


def kill_owned(owner: str, deadline_s: float) -> None:
    """Kill everything that carries this owner's mark, until nothing is left or the deadline passes.

    Nothing is left where two looks in a row find nothing: a process that has been forked and does not run its own
    program yet carries no mark.
    """
    ends, empty = time.monotonic() + deadline_s, 0
    while empty < 2 and time.monotonic() < ends:
        found = marked_processes(owner)
        empty = 0 if found else empty + 1
        kill(found)
        time.sleep(_LOOK_AGAIN_S)


def start_guard(owner: str, timeout_s: float) -> IO[bytes]:
    """Start the process that kills the owner's children when the owner dies, however it dies.

    The guard waits for the end of the returned pipe, which closes with its owner; closing it
    earlier lets the guard do its work at once. It is not a child of the owner, so that whoever kills
    the owner's children leaves it alone. Raises ``subprocess.TimeoutExpired`` where it does not start in ``timeout_s``
    seconds.
    """
    environment = {k: v for k, v in inherited().items() if k != MARK} | {"PYTHONPATH": str(_SOURCES)}
    starter = subprocess.Popen(
        [sys.executable, "-S", "-m", "environments.browser.guard", owner],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    starter.wait(timeout_s)
    assert starter.stdin is not None
    return starter.stdin
