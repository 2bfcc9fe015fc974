"""The processes of a run, found through ``/proc``: its descendants, and what carries its environment.

Reads only. An identity is a process id with its start time, so that a reused id is not taken for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rollout_workers.browser_processes import process_mark

_PROC = Path("/proc")


def descendants(root: int) -> dict[int, str]:
    """Return the command lines of all living descendants of a process, by process id."""
    children: dict[int, list[int]] = {}
    for folder in _PROC.glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it ended meanwhile
            continue
        children.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(folder.name))
    found, waiting = {}, list(children.get(root, ()))
    while waiting:
        pid = waiting.pop()
        found[pid] = _command(pid)
        waiting += children.get(pid, ())
    return found


def living(marks: Iterable[str]) -> set[str]:
    """Return those of the identities (``pid:start``) whose process is still alive."""
    return {mark for mark in marks if process_mark(int(mark.partition(":")[0])) == mark}


def with_variable(name: str, value: str) -> set[str]:
    """Return the identities of the living processes that inherited an environment variable with this value."""
    wanted = f"{name}={value}".encode()
    found = set()
    for folder in _PROC.glob("[0-9]*"):
        try:
            carries = wanted in (folder / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile, or belongs to somebody else
            continue
        if carries and (mark := process_mark(int(folder.name))):
            found.add(mark)
    return found


def _command(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
