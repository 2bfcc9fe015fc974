"""The table a run ends with: held-out success before RL and after every phase, and what was lost.

Owns turning a ``RunSummary`` into rich tables; no number is computed here.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis.results import EpisodeCounts, GroupResult, PhaseSummary, SplitResult
from cluster.run_state import duration
from cluster.summary import RunSummary


def result_table(summary: RunSummary) -> RenderableType:
    """Return one table for each evaluated split and a line about lost episodes."""
    splits = list(dict.fromkeys(split for phase in summary.phases for split in phase.evaluation))
    tables = [_split_table(split, summary.phases) for split in splits]
    return Group(*tables, lost_line(summary.episodes))


def evaluation_table(split: str, result: SplitResult) -> RenderableType:
    """Return one evaluation by site, by horizon and by template, and a line about lost episodes."""
    table = Table(title=Text(f"Success on {split} (% with 95 % intervals)"), title_justify="left")
    table.add_column("group", no_wrap=True)
    table.add_column("success", justify="right", no_wrap=True)
    table.add_column("episodes", justify="right")
    for prefix, groups in (
        ("", {"all": result}),
        ("site ", result.by_site),
        ("expert's steps ", result.by_horizon),
        ("", result.by_template),
    ):
        table.add_section()
        for name, rate in groups.items():
            table.add_row(Text(prefix + name), Text(rate_text(rate)), str(rate.n))
    table.add_section()
    for k, value in result.pass_at.items():
        table.add_row(Text(f"pass@{k}"), f"{100 * value:.1f}", "")
    lost = sum(result.lost.values())
    return Group(table, lost_line(EpisodeCounts(result.n + lost, result.n, result.lost)))


def lost_line(episodes: EpisodeCounts) -> Text:
    """Return one sentence that accounts for every episode."""
    if not episodes.failed:
        return Text(f"Episodes: {episodes.dispatched} dispatched, all judged.")
    lost = ", ".join(f"{count} {reason}" for reason, count in sorted(episodes.failed.items(), key=lambda kv: -kv[1]))
    total = sum(episodes.failed.values())
    return Text(
        f"Episodes: {episodes.dispatched} dispatched, {episodes.completed} judged, {total} lost and left out "
        f"of every rate ({lost})."
    )


def _split_table(split: str, phases: Iterable[PhaseSummary]) -> Table:
    measured = [(phase, phase.evaluation[split]) for phase in phases if split in phase.evaluation]
    sites = sorted({site for _, result in measured for site in result.by_site})
    tasks = max((result.n for _, result in measured), default=0)
    table = Table(title=Text(f"Success on {split} ({tasks} episodes; % with 95 % intervals)"), title_justify="left")
    table.add_column("after", no_wrap=True)
    table.add_column("all", justify="right", no_wrap=True)
    for site in sites:
        table.add_column(Text(site), justify="right", no_wrap=True)
    table.add_column("lost", justify="right")
    table.add_column("rollouts", justify="right")
    table.add_column("took", justify="right", no_wrap=True)
    for phase, result in measured:
        table.add_row(*_row(phase, result, sites))
    return table


def _row(phase: PhaseSummary, result: SplitResult, sites: Iterable[str]) -> list[Text]:
    label = f"phase {phase.phase}" if phase.phase else "before RL"
    cells = [label, rate_text(result)]
    cells += [rate_text(result.by_site[site]) if site in result.by_site else "-" for site in sites]
    rollout = rate_text(phase.rollout, interval=False) if phase.rollout else "-"
    cells += [str(sum(result.lost.values())), rollout, duration(sum(phase.seconds.values()))]
    return [Text(cell) for cell in cells]


def rate_text(rate: GroupResult | SplitResult, interval: bool = True) -> str:
    """Return percent as ``61.0 [51.2, 70.0]``, or ``-`` where nothing was judged."""
    if rate.success is None:
        return "-"
    text = f"{100 * rate.success:.1f}"
    return f"{text} [{100 * rate.low:.1f}, {100 * rate.high:.1f}]" if interval else text
