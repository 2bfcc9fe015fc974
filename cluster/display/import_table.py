"""What ``waymark data import`` brought in and left out, for a person to read.

Invariant: what the source says is shown as text, never as an order to the terminal.
"""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from offline.folder import DataReport
from records.terminal import printable


def show_import(console: Console, report: DataReport) -> None:
    """Print what a folder holds, and one row for each reason with its first example."""
    rows = (
        ("form", report.form),
        ("episodes", f"{report.episodes}, of them {report.successes} solved"),
        ("steps", f"{report.steps}, {report.truncated_pages} with a page that was cut"),
        ("longest", f"{report.longest_prompt} tokens of a prompt, {report.longest_action} of an action"),
    )
    grid = Table.grid(padding=(0, 2))
    for name, found in rows:
        grid.add_row(name, Text(printable(found)))
    console.print(grid)
    if not report.left_out:
        console.print("Nothing was left out.")
        return
    table = Table(title="Left out", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("reason", no_wrap=True)
    table.add_column("steps", justify="right")
    table.add_column("first example")
    for reason, entry in sorted(report.left_out.items(), key=lambda item: -item[1].steps):
        first = entry.examples[0]
        shown = f"{first.file}, record {first.record}: {first.found}"
        table.add_row(reason, str(entry.steps), Text(printable(shown.replace("\n", " "))))
    console.print(table)
