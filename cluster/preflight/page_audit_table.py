"""The findings of ``waymark env audit`` for a person to read."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cluster.preflight.page_audit import AuditedPage
from records.terminal import printable

_MOST_LINES = 30


def show_audits(console: Console, found: Sequence[AuditedPage]) -> None:
    """Print a row for each page, and what is missing there, offered in vain, without a name or unread."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("page")
    for heading in ("usable", "recall", "offered", "precision", "named", "words", "read", "size", "stale", "step ms"):
        table.add_column(heading, justify="right")
    for page in found:
        audit = page.audit
        shares = (f"{share:.3f}" for share in (audit.recall, audit.precision, audit.names, audit.word_recall))
        recall, precision, names, read = shares
        size = f"{audit.chars / max(1, audit.tree_chars):.2f}"
        table.add_row(
            Text(printable(page.address)), str(audit.usable), recall, str(audit.offered), precision, names,
            str(audit.words), read, size, "yes" if page.stale else "no", f"{page.step_ms:.0f}",
        )  # fmt: skip
    console.print(table)
    console.print("size: characters of the observation, as a share of the flattened accessibility tree", soft_wrap=True)
    for page in found:
        for what, lines in (
            ("missing", page.audit.missing),
            ("offered in vain", page.audit.vain),
            ("without a name", page.audit.nameless),
            ("not read", page.audit.unread),
        ):
            _show(console, f"{page.address}: {what}", lines)


def _show(console: Console, title: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    console.print(Text(printable(f"{title} ({len(lines)})"), "bold"), soft_wrap=True)
    for line in lines[:_MOST_LINES]:
        console.print(Text(printable(f"  {line}")), soft_wrap=True)
    if len(lines) > _MOST_LINES:
        console.print(f"  … {len(lines) - _MOST_LINES} more")
