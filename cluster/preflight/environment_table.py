"""The findings of ``waymark env check`` for a person to read."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cluster.preflight.environment import EnvironmentFindings
from records.terminal import printable


def show_findings(console: Console, found: EnvironmentFindings) -> None:
    """Print each point of the contract with what was found against it, and the measurements."""
    for task in found.tasks:
        console.print(Text(printable(f"Task: {task.intent} ({task.task_id})")), soft_wrap=True)
    for point in found.points:
        kept = ("FAIL  ", "bold red") if point.broken else ("ok    ", "green")
        lines = "\n".join([point.promise, *(f"      {line}" for line in point.broken)])
        console.print(Text.assemble(kept, printable(lines)), soft_wrap=True)
    if not found.measured:
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("environments", "steps/s", "step ms", "reset ms", "steps", "resets", "failures"):
        table.add_column(heading, justify="right")
    for row in found.measured:
        failures = ", ".join(f"{code} x{n}" for code, n in row.failures.most_common()) or "none"
        rates = (f"{row.steps_per_s:.1f}", f"{row.step_ms:.1f}", f"{row.reset_ms:.1f}")
        table.add_row(str(row.slots), *rates, str(len(row.steps_s)), str(len(row.resets_s)), Text(printable(failures)))
    console.print(table)
