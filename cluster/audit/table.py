"""What an audit found, as tables for a person.

Owns their layout. Invariant: text from a run folder is read neither as markup nor as orders to the terminal.
"""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cluster.audit.audit import AuditReport
from records.terminal import printable

_MEANING = {
    "manifests": "each complete stage has a manifest, in an unbroken chain",
    "files": "each file has the SHA-256 that was recorded",
    "shards": "each shard is whole, and each record in it was dispatched",
    "episodes": "dispatched = completed + failed by kind; each counted once",
    "training": "each trained step has an episode, a verdict and a published version",
    "ledger": "each attempt has one end",
}


def show_report(console: Console, report: AuditReport) -> None:
    """Print each stage's attempts, why some failed, what was rolled back, what was checked, and each finding."""
    accounts = _table("stage", "attempts", "completed", "failed", "requeued", "cut short")
    reasons: list[str] = []
    for (phase, stage), ledger in report.accounts.items():
        failed, requeued = sum(ledger.failed.values()), sum(ledger.requeued.values())
        counts = (ledger.leased, ledger.completed, failed, requeued, ledger.cut_short)
        accounts.add_row(_text(f"{phase} {stage}"), *map(str, counts))
        reasons += [f"{phase} {stage}: {count} x {code} failed" for code, count in sorted(ledger.failed.items())]
        reasons += [f"{phase} {stage}: {count} x {code} requeued" for code, count in sorted(ledger.requeued.items())]
    checks = _table("check", "looked at", "wrong", "what must hold")
    for check in report.checks:
        wrong = Text(str(len(check.findings)), style="bold red" if check.findings else "green")
        checks.add_row(check.name, str(check.looked_at), wrong, _MEANING[check.name])
    console.print(accounts)
    for reason in reasons:
        console.print(_text(reason), soft_wrap=True)
    for found in report.rollbacks:
        console.print(_text(f"session {found.session}: {found.line}"), soft_wrap=True)
    console.print(checks)
    for finding in report.findings:
        console.print(_text(f"{finding.check}: {finding.subject}: {finding.found}"), soft_wrap=True)


def _text(text: str) -> Text:
    return Text(printable(text))


def _table(*headings: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        words = heading in ("stage", "check", "what must hold")
        table.add_column(heading, justify="left" if words else "right", no_wrap=not words)
    return table
