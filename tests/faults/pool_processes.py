"""The processes of the browsers that a pool's workers started, to be killed by tests."""

from __future__ import annotations

from benchmarks.process_tree import descendants
from environments.browser.owned_processes import MarkedProcess, marked_processes, process_mark
from rollout_workers.pool import RolloutPool


def owned(pool: RolloutPool) -> list[MarkedProcess]:
    return [p for pid in pool.process_ids().values() for p in marked_processes(process_mark(pid))]


def renderers(pool: RolloutPool) -> list[int]:
    """The processes of all tabs; they have no mark of their own, for Chromium writes over their environment."""
    family = {pid: command for chromium in chromiums(pool) for pid, command in descendants(chromium).items()}
    return [pid for pid, command in family.items() if "--type=renderer" in command]


def chromiums(pool: RolloutPool) -> list[int]:
    """The main process of each Chromium: no shell script that may start it, no child that still has its line.

    A child has it from its fork to its own program or end, some milliseconds: it is found by the first look and is
    either a descendant or gone at the second.
    """
    own = _with_browser_line(pool)
    children = {child for pid in own for child in descendants(pid)}
    return sorted(own & _with_browser_line(pool) - children)


def _with_browser_line(pool: RolloutPool) -> set[int]:
    marked = [p for p in owned(pool) if "--waymark-browser=" in p.command and "--type=" not in p.command]
    return {p.pid for p in marked if not p.command.startswith("/bin/")}
