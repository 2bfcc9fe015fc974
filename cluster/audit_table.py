"""What an audit found, as tables for a person.

Owns their layout. Invariant: text from a run folder is never read as markup.
"""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cluster.audit import AuditReport

_MEANING = {
    "manifests": "each complete stage has a manifest, in an unbroken chain",
    "files": "each file has the SHA-256 that was recorded",
    "shards": "each shard is whole, and each record in it was dispatched",
    "episodes": "dispatched = completed + failed by kind; each counted once",
    "training": "each trained step has an episode, a verdict and a published version",
    "ledger": "each attempt has one end",
}


def show_report(console: Console, report: AuditReport) -> None:
    """Print the attempts of each stage, what was checked, and each finding."""
    accounts = _table("stage", "attempts", "completed", "failed", "requeued", "cut short")
    for (phase, stage), ledger in report.accounts.items():
        failed, requeued = _by_kind(ledger.failed), _by_kind(ledger.requeued)
        counts = (ledger.leased, ledger.completed, failed, requeued, ledger.cut_short)
        accounts.add_row(f"{phase} {stage}", *(Text(str(count)) for count in counts))
    checks = _table("check", "looked at", "wrong", "what must hold")
    for check in report.checks:
        wrong = Text(str(len(check.findings)), style="bold red" if check.findings else "green")
        checks.add_row(check.name, str(check.looked_at), wrong, _MEANING[check.name])
    console.print(accounts)
    console.print(checks)
    for finding in report.findings:
        console.print(Text(f"{finding.check}: {finding.subject}: {finding.found}"), soft_wrap=True)


def _table(*headings: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in ("attempts", "completed", "looked at") else "left")
    return table


def _by_kind(counts: dict[str, int]) -> str:
    return ", ".join(f"{code} x{count}" for code, count in sorted(counts.items())) or "0"
