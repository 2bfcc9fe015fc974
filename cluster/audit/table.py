"""What an audit found, as tables for a person.

Owns their layout. Invariant: text from a run folder is read neither as markup nor as orders to the terminal.
"""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cluster.audit.audit import AuditResult
from records.terminal import printable

_MEANING = {
    "manifests": "each complete stage has a manifest, in an unbroken chain",
    "files": "each file has the SHA-256 that was recorded",
    "shards": "each shard is whole, and each record in it was dispatched or found",
    "episodes": "dispatched = completed + failed by kind; each counted once",
    "training": "each trained step has an episode, a verdict and a published version",
    "ledger": "each attempt has one end",
    "first states": "each training task that was to be opened has one first state on the disk, or a reason",
    "labels": "each episode has its judges' labels or failures; what was learned had all",
}


def show_audit(console: Console, result: AuditResult) -> None:
    """Print each stage's attempts, why some failed, how many episodes were found without one, and the rest.

    That is what was rolled back, what was checked, and each finding.
    """
    accounts = _table("stage", "attempts", "completed", "failed", "requeued", "cut short")
    reasons: list[str] = []
    for (phase, stage), ledger in result.accounts.items():
        failed, requeued = sum(ledger.failed.values()), sum(ledger.requeued.values())
        counts = (ledger.leased, ledger.completed, failed, requeued, ledger.cut_short)
        accounts.add_row(_text(f"{phase} {stage}"), *map(str, counts))
        reasons += [f"{phase} {stage}: {count} x {code} failed" for code, count in sorted(ledger.failed.items())]
        reasons += [f"{phase} {stage}: {count} x {code} requeued" for code, count in sorted(ledger.requeued.items())]
        if ledger.found:
            reasons.append(f"{phase} {stage}: {ledger.found} episodes found, whose lines of dispatch are lost")
    parts = _table("part", "looked at", "wrong", "what must hold")
    for part in result.parts:
        wrong = Text(str(len(part.findings)), style="bold red" if part.findings else "green")
        parts.add_row(part.name, str(part.looked_at), wrong, _MEANING[part.name])
    console.print(accounts)
    for reason in reasons:
        console.print(_text(reason), soft_wrap=True)
    for found in result.rollbacks:
        console.print(_text(f"start {found.start}: {found.line}"), soft_wrap=True)
    console.print(parts)
    for finding in result.findings:
        console.print(_text(f"{finding.part}: {finding.subject}: {finding.found}"), soft_wrap=True)


def _text(text: str) -> Text:
    return Text(printable(text))


def _table(*headings: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        words = heading in ("stage", "part", "what must hold")
        table.add_column(heading, justify="left" if words else "right", no_wrap=not words)
    return table
