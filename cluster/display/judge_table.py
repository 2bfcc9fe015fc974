"""What judges said, as tables for a person: agreement of two, and how good an outcome model is.

Owns their layout; computes no number. Invariant: names are read neither as markup nor as orders to the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.agreement import Agreement
from analysis.discrimination import OutcomeReport
from records.terminal import printable


def show_agreement(console: Console, first: str, second: str, groups: Mapping[str, Agreement]) -> None:
    """Print how far two judges agree, in all and by site."""
    title = _text(f"{first} (1st) and {second} (2nd)")
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.caption, table.caption_justify = "yes by both, by none, by the 1st alone, by the 2nd alone", "left"
    headings = ("", "n", "agree %", "kappa", "both", "none", "1st", "2nd")
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for name, found in groups.items():
        counts = (found.both, found.neither, found.only_first, found.only_second)
        table.add_row(_text(name), str(found.n), _share(found), _kappa(found), *map(str, counts))
    console.print(table)


def show_outcome_report(console: Console, report: OutcomeReport) -> None:
    """Print what an outcome model is worth on held-out templates."""
    auc = report.auc
    lines = (
        f"Trained on {report.trained} episodes, calibrated on {report.calibrated}; held out: {report.n} episodes of "
        f"{report.templates} templates, {report.successes} of them successes.",
        f"AUC {auc.value:.3f} [{auc.low:.3f}, {auc.high:.3f}] (95 %, bootstrap over templates)",
        f"Accuracy {100 * report.accuracy:.1f} % from a probability of {report.threshold:.3g} on; expected calibration "
        f"error {report.ece:.3f}",
    )
    for line in lines:
        console.print(Text(line), soft_wrap=True)
    table = Table(title="Reliability", title_justify="left")
    for heading in ("episodes", "said", "happened"):
        table.add_column(heading, justify="right")
    for found in report.bins:
        table.add_row(str(found.n), f"{found.said:.2f}", f"{found.happened:.2f}")
    console.print(table)
    show_agreement(console, "rules", "outcome model", {"all": report.agreement, **report.by_site})


def _share(found: Agreement) -> str:
    return "-" if found.share is None else f"{100 * found.share:.1f} [{100 * found.low:.0f}, {100 * found.high:.0f}]"


def _kappa(found: Agreement) -> str:
    if found.kappa is None:
        return "-"
    return f"{found.kappa:.2f} [{found.kappa_low:.2f}, {found.kappa_high:.2f}]"


def _text(text: str) -> Text:
    return Text(printable(text))
