"""Milestones that were written, the statistics of milestones, and how actions match them, for a person to read."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.intervals import Interval, p_text
from cluster.milestones.calibration import MatchingCalibration
from cluster.milestones.validation import SourceValidity
from cluster.run_folder.stage_results import MilestonesWritten
from records.episodes import Task
from records.terminal import printable

_PAPER = ("MiRA's paper", "", "0.84", "0.79 0.60 0.68", "0.46 (<0.001)", "")


def show_written(console: Console, tasks: Sequence[Task], written: MilestonesWritten) -> None:
    """Print each task with what was written for it, beside what it brings, or why nothing was written."""
    for task in tasks:
        console.print(Text(printable(f"{task.task_id}: {task.intent}"), style="bold"), soft_wrap=True)
        found = written.written.get(task.task_id)
        if found is None:
            console.print(Text(printable(f"  none: {written.absent[task.task_id]}")), soft_wrap=True)
            continue
        for number, one in enumerate(found.milestones, start=1):
            shown = f"  {number}. {one.description}" + (f"  {json.dumps(one.check)}" if one.check else "")
            console.print(Text(printable(shown)), soft_wrap=True)
        for own in task.milestones:
            console.print(Text(printable(f"  its own: {own.description}"), style="dim"), soft_wrap=True)
    console.print(
        f"{len(written.written)} of {len(tasks)} tasks have milestones; asking cost {written.cost_usd:.4f} USD."
    )


def show_validity(console: Console, found: Sequence[SourceValidity]) -> None:
    """Print a row a source, success by the share completed, and why a source is rejected."""
    table = Table(title="Milestones against success", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("source", "episodes", "AUROC (95 %)", "all = success: P R F1", "Kendall's tau (p)", "verdict"):
        table.add_column(heading)
    for one in found:
        v = one.validity
        e = v.equivalence
        table.add_row(
            Text(printable(one.source)),
            f"{v.episodes}" + (f" (+{one.left_out} without)" if one.left_out else ""),
            f"{_number(v.auroc.value)} ({v.auroc.low:.2f} to {v.auroc.high:.2f})",
            f"{_number(e.precision)} {_number(e.recall)} {_number(e.f1)}",
            f"{_number(v.tau)} ({p_text(v.p)})",
            Text("rejected", style="bold red") if v.rejected else Text("accepted", style="green"),
        )
    table.add_section()
    table.add_row(*_PAPER)
    console.print(table)
    for one in found:
        shares = ", ".join(
            f"{share}: {rate.success:.0%} of {rate.n} ({rate.low:.0%} to {rate.high:.0%})"
            for share, rate in one.validity.by_completed.items()
        )
        console.print(Text(printable(f"{one.source}: success where so many are completed: {shares or 'no episodes'}")))
        for rule in one.validity.rejected:
            console.print(Text(printable(f"  rejected: {rule}")))


def show_calibration(console: Console, found: MatchingCalibration) -> None:
    """Print the accuracy by threshold, the chosen one, and how well it does on templates that were left out."""
    table = Table(title="Actions matched to milestones", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("similarity above")
    table.add_column("accuracy", justify="right")
    for at, accuracy in found.by_threshold.items():
        table.add_row(f"{at:g}", f"{accuracy:.3f}")
    console.print(table)
    console.print(
        f"{found.pairs} actions, of which {found.reached} reach the next milestone; both kinds weigh the same, chance "
        f"is 0.5. MiniLM and 0.75 gave 0.813 on the 500 pairs of ADMIRE's paper.",
        soft_wrap=True,
    )
    console.print(f"judges.milestone_matching.threshold: {found.threshold:g}", style="bold")
    console.print(f"  where it was chosen ({found.taught} actions): {found.taught_accuracy:.3f}", highlight=False)
    for name, measured in (
        ("on templates left out", found.held_out),
        ("0.75 there", found.of_paper),
        ("against another episode's milestones (control)", found.control),
    ):
        console.print(f"  {name}: {_with_interval(measured)}", highlight=False)


def _with_interval(found: Interval | None) -> str:
    return "too few templates to tell" if found is None else f"{found.value:.3f} ({found.low:.2f} to {found.high:.2f})"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
