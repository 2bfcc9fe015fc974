"""The processes of the browsers that a pool's workers started, to be killed by tests."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil

from benchmarks.process_tree import descendants, started_with
from environments.browser.owned_processes import MARK, process_mark
from rollout_workers.pool import RolloutPool


def renderers(pool: RolloutPool) -> list[int]:
    """The processes of all tabs; they have no mark of their own, for Chromium writes over their environment."""
    family = {pid: command for chromium in chromiums(pool) for pid, command in descendants(chromium).items()}
    return [pid for pid, command in family.items() if "--type=renderer" in command]


def chromiums(pool: RolloutPool) -> list[int]:
    """The main process of each Chromium: of its process group, the first that is no shell script.

    Playwright starts each Chromium in a group of its own. What is forked there later has the line of its parent until
    it begins a program of its own, so a line does not tell the main process.
    """
    groups: dict[int, list[tuple[float, int]]] = {}
    for process in browser_processes(pool):
        with suppress(psutil.Error, ProcessLookupError):
            groups.setdefault(os.getpgid(process.pid), []).append((process.create_time(), process.pid))
    return sorted(min(group)[1] for group in groups.values())


def browser_processes(pool: RolloutPool) -> list[psutil.Process]:
    """What has a browser's command line and is neither a shell script that starts it nor a typed helper of it."""
    found = []
    for mark in filter(None, map(process_mark, pool.process_ids().values())):
        for process in started_with(MARK, mark):
            with suppress(psutil.Error):  # it ended meanwhile
                command = " ".join(process.cmdline())
                ours = "--waymark-browser=" in command and "--type=" not in command
                if ours and not command.startswith("/bin/"):
                    found.append(process)
    return found


def told(pool: RolloutPool) -> str:
    """These processes in a line short enough for any log: who, of whom, in which group, how, with how many threads."""
    facts = []
    for process in browser_processes(pool):
        with suppress(psutil.Error, ProcessLookupError):
            group, threads = os.getpgid(process.pid), process.num_threads()
            facts.append(f"{process.pid} of {process.ppid()} in {group}, {process.status()}, {threads} threads")
    return "; ".join(facts)
