"""Processes found by a variable in the environment that they were started with, whoever their parent is now."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    title: str


def started_with(name: str, value: str) -> list[Process]:
    """Living processes of this machine, but not this one itself, whose environment had ``name=value``."""
    found, wanted = [], f"{name}={value}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                found.append(Process(int(folder.name), title))
        except OSError:  # it ended meanwhile, or belongs to somebody else
            continue
    return found


def left_after(name: str, value: str, seconds: float) -> list[Process]:
    """What is still there after at most ``seconds``; it is killed, so that one failure does not cause others."""
    ends = time.monotonic() + seconds
    while (left := started_with(name, value)) and time.monotonic() < ends:
        time.sleep(0.1)
    for process in left:
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return left


def runs(pid: int) -> bool:
    """Whether the process is there, and not only its entry for a parent that has not asked for its status."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
