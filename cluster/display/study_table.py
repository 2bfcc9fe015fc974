"""A study's outcome, for a person to read on a terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.intervals import Interval, p_text
from analysis.predictions import Measure
from cluster.studies.results import Outcome, StudyResults
from records.terminal import printable


def show_study(console: Console, results: StudyResults) -> None:
    """Print the levels and differences of each split, and each prediction with what came of it."""
    for found in results.tables:
        title = f"{found.split}: {found.group}" if found.group else found.split
        title += "" if found.measure is Measure.SUCCESS else f", {found.measure.value}"
        table = Table(title=Text(printable(title)), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        for heading in ("arm", f"{found.measure.value}, %", "less another's, points", "p, these runs"):
            table.add_column(heading)
        for arm, level in found.levels.items():
            against = [one for one in found.differences if one.arm == arm]
            table.add_row(
                Text(printable(arm)),
                _interval(level.mean),
                Text(printable("; ".join(f"{one.over} {_interval(one.mean, signed=True)}" for one in against))),
                "; ".join(p_text(one.p) for one in against),
            )
        console.print(table)
    for outcome in results.outcomes:
        line = f"{outcome.bearing.value}: {outcome.prediction.says}"
        if outcome.found is not None:
            line += f" ({_interval(outcome.found.mean, signed=True)} points{_missing(outcome)})"
        console.print(Text(printable(line)), soft_wrap=True)
    for name, why in results.failed.items():
        console.print(Text(printable(f"missing: {name}: {why}"), style="red"), soft_wrap=True)


def _missing(outcome: Outcome) -> str:
    if outcome.missing:
        return f", {outcome.missing} of {outcome.seeds} seeds missing"
    return ", and one seed says nothing of others" if outcome.seeds == 1 else ""


def _interval(found: Interval, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    value, low, high = (format(100 * share, f"{sign}.1f") for share in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"
