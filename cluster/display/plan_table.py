"""The plan of a run, as tables for a person: its processes, and their memory by part.

Owns their layout; computes no number. Invariant: names are read neither as markup nor as orders to the terminal.
"""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from cluster.preflight.plan import Plan
from records.terminal import printable


def plan_table(plan: Plan) -> Table:
    """Return the processes of a run, with what each declares, and what all of them come to."""
    table = Table(title="Plan", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("process", "count", "cores each", "GPUs each", "MiB each", ""):
        table.add_column(heading, no_wrap=heading == "process")
    for part in plan.processes:
        numbers = (str(part.count), f"{part.cpus:g}", f"{part.gpus:g}", str(part.memory_mb))
        table.add_row(part.name, *numbers, Text(printable(part.note)))
    table.add_section()
    table.add_row("all", "", f"{plan.ray_cpus:g}", str(plan.ray_gpus), str(plan.memory_mb))
    return table


def memory_table(plan: Plan) -> Table:
    """Return what the parts of each process take of memory."""
    table = Table(title="Memory by part", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("process", "part", "MiB each", "on", ""):
        table.add_column(heading)
    for process in plan.processes:
        for part in process.parts:
            table.add_row(process.name, part.name, str(part.mib), "GPU" if part.on_gpu else "host", part.why)
    return table
