"""The processes of a run: its descendants, and what carries its environment.

Reads only. An identity is a process id with its start time, so that a reused id is not taken for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import psutil

from environments.browser.owned_processes import process_mark


def descendants(root: int) -> dict[int, str]:
    """Return the command lines of all living descendants of a process, by process id."""
    found = {}
    with suppress(psutil.NoSuchProcess):
        for process in psutil.Process(root).children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # it ended meanwhile
                found[process.pid] = " ".join(process.cmdline())
    return found


def living(marks: Iterable[str]) -> set[str]:
    """Return those of the identities (``pid:start``) whose process is still alive."""
    return {mark for mark in marks if process_mark(int(mark.partition(":")[0])) == mark}


def with_variable(name: str, value: str) -> set[str]:
    """Return the identities of the living processes that inherited an environment variable with this value."""
    return {mark for process in started_with(name, value) if (mark := process_mark(process.pid))}


def started_with(name: str, value: str) -> list[psutil.Process]:
    """Return the living processes that were started with an environment variable of this value."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):  # it ended meanwhile, or belongs to somebody else
            if process.environ().get(name) == value:
                found.append(process)
    return found
