"""How episodes fail, as tables for a person.

Owns their layout; no number is computed here. Invariant: names are read neither as markup nor as orders to the
terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis.failure_modes import Mode
from analysis.failures import FailureReport, ModeShares
from analysis.interactions import first_and_last
from analysis.metrics import HORIZON_ENDS
from analysis.results import GroupResult
from records.episodes import Source
from records.terminal import printable


def failure_table(report: FailureReport) -> RenderableType:
    """Return the shares of the modes by phase, policy and site, success by horizon and by limit, and pass@k."""
    table = _table(f"Failures of {report.name} (% of them, with 95 % intervals)")
    for heading in ("failed", *(mode.value for mode in Mode), "stuck, of all"):
        table.add_column(heading, justify="right", min_width=9)
    for groups in ({"all": report.everything}, report.by_phase, report.by_policy, report.by_site):
        for name, group in groups.items():
            table.add_row(Text(printable(name)), *_cells(group))
        table.add_section()
    horizons = _table("Success by the expert's steps (%)")
    buckets = list(dict.fromkeys(bucket for rates in report.by_horizon.values() for bucket in rates))
    for bucket in buckets:
        horizons.add_column(bucket, justify="right")
    for name, rates in report.by_horizon.items():
        horizons.add_row(Text(printable(name)), *(_percent(rates.get(bucket)) for bucket in buckets))
    lines = [
        Text(printable(f"{name}: " + ", ".join(f"pass@{k} {100 * value:.1f}" for k, value in found.items())))
        for name, found in report.pass_at.items()
    ]
    lost = ", ".join(f"{count} {reason}" for reason, count in report.lost.items())
    lines += [Text(printable(f"Without a verdict, and in no rate: {lost}."))] if lost else []
    return Group(table, horizons, *_limits(report), *lines)


def _limits(report: FailureReport) -> list[Table]:
    """Return success by the interactions allowed, of the first and the last evaluation; nothing without any."""
    curves = first_and_last(report.by_limit)
    longest = max((len(curve) for curve in curves.values()), default=0)
    if not longest:
        return []
    table = _table("Success by the interactions allowed (%; > where a higher limit of the episodes may give more)")
    limits = [*(end for end in HORIZON_ENDS if end < longest), longest]
    for limit in limits:
        table.add_column(str(limit), justify="right")
    for name, curve in curves.items():
        found = (curve[str(min(limit, len(curve)))] for limit in limits)
        cells = ((">" if at.cut else "") + _percent(at.rate) for at in found)
        table.add_row(Text(printable(name)), *cells)
    return [table]


def failure_comparison(reports: Sequence[FailureReport]) -> RenderableType:
    """Return the last evaluations of several runs side by side, or what else they played last."""
    table = _table("The last evaluations side by side (%, with 95 % intervals)")
    lasts = [_last(report) for report in reports]
    for report, name in zip(reports, lasts, strict=True):
        table.add_column(Text(printable(f"{report.name}, {name}")), justify="right", overflow="fold")
    shares = [report.by_phase[name] for report, name in zip(reports, lasts, strict=True)]
    table.add_row("judged", *(str(group.judged) for group in shares))
    table.add_row("failed", *(str(group.failures) for group in shares))
    for mode in Mode:
        table.add_row(f"{mode.value}, of the failed", *(_percent(group.shares[mode.value]) for group in shares))
    table.add_row("stuck, of all", *(_percent(group.stuck_rate) for group in shares), end_section=True)
    rates = [report.by_horizon[name] for report, name in zip(reports, lasts, strict=True)]
    for bucket in dict.fromkeys(bucket for found in rates for bucket in found):
        table.add_row(f"success at {bucket} steps", *(_percent(found.get(bucket)) for found in rates))
    return table


def _last(report: FailureReport) -> str:
    """Return the name of the run's last evaluation, else of what it played last."""
    names = [name for name in report.by_phase if name.startswith(Source.EVALUATION)] or list(report.by_phase)
    return names[-1]


def _cells(group: ModeShares) -> list[str]:
    shares = [_percent(group.shares[mode.value]) for mode in Mode]
    return [f"{group.failures}/{group.judged}", *shares, _percent(group.stuck_rate)]


def _table(title: str) -> Table:
    table = Table(
        title=Text(printable(title)), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("", no_wrap=True)
    return table


def _percent(rate: GroupResult | None) -> str:
    """Return whole percents as ``61 [51,70]``, or ``-`` where there is nothing to count."""
    if rate is None or rate.success is None:
        return "-"
    return f"{100 * rate.success:.0f} [{100 * rate.low:.0f},{100 * rate.high:.0f}]"
