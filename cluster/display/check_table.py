"""What was looked at on this machine, as a table for a person.

Invariant: what was found is read neither as markup nor as orders to the terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cluster.errors import MissingError
from records.checks import Check
from records.terminal import printable


def show_checks(console: Console, checks: Sequence[Check]) -> None:
    """Print checks as a table; raise ``MissingError`` where one of them failed."""
    styles = {"ok": "green", "warn": "yellow", "fail": "bold red"}
    table = Table.grid(padding=(0, 2))
    for entry in checks:
        detail = entry.found + (f"\n→ {entry.advice}" if entry.advice else "")
        shown = (Text(printable(text)) for text in (entry.name, detail))
        table.add_row(Text(entry.status.value, style=styles[entry.status]), *shown)
    console.print(table)
    failed = sum(entry.status == "fail" for entry in checks)
    if failed:
        raise MissingError(f"{failed} missing, see above")
