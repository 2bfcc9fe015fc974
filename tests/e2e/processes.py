"""Processes found by a variable in the environment that they were started with, whoever their parent is now."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass

import psutil

from benchmarks import process_tree


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    title: str


def started_with(name: str, value: str) -> list[Process]:
    """Living processes of this machine, but not this one itself, whose environment had ``name=value``."""
    found = []
    for process in process_tree.started_with(name, value):
        with suppress(psutil.Error):  # it ended meanwhile
            found.append(Process(process.pid, " ".join(process.cmdline()).strip()))
    return found


def left_after(name: str, value: str, seconds: float) -> list[Process]:
    """What is still there after at most ``seconds``; it is killed, so that one failure does not cause others."""
    ends = time.monotonic() + seconds
    while (left := started_with(name, value)) and time.monotonic() < ends:
        time.sleep(0.1)
    for process in left:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    return left


def runs(pid: int) -> bool:
    """Whether the process is there, and not only its entry for a parent that has not asked for its status."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
