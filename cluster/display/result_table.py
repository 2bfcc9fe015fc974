"""The table a run ends with: held-out success before RL and after every phase, its rollouts, and what was lost.

Owns turning a ``RunSummary`` into rich tables; no number is computed here. Invariant: names are read neither as markup
nor as orders to the terminal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from analysis.results import EpisodeCounts, GroupResult, PhaseSummary, SplitResult, evaluated_sites, evaluated_splits
from cluster.display.run_state import duration
from cluster.run_folder.summary import RunSummary
from records.terminal import printable


def result_table(summary: RunSummary) -> RenderableType:
    """Return one table for each evaluated split, and lines about training rollouts, wall time and lost episodes."""
    tables = [
        _SplitTable(split, [phase for phase in summary.phases if split in phase.evaluation])
        for split in evaluated_splits(summary.phases)
    ]
    return Group(*tables, *_phase_lines(summary.phases), lost_line(summary.episodes))


def _phase_lines(phases: Sequence[PhaseSummary]) -> list[Text]:
    """Return what was sampled in each phase, by verdicts and by labels, and how long it took; no line of nothing."""
    labelled = [phase.labels.success if phase.labels else None for phase in phases]
    told = {
        "Training rollouts, sampled (% success)": [_sampled(phase.rollout) for phase in phases],
        "Training rollouts by judges' labels (% success)": [_sampled(success) for success in labelled],
        "Wall time": [duration(sum(phase.seconds.values())) if phase.seconds else "" for phase in phases],
    }
    lines = {
        what: [f"{_after(phase)} {value}" for phase, value in zip(phases, values, strict=True) if value]
        for what, values in told.items()
    }
    return [Text(f"{what}: {', '.join(values)}") for what, values in lines.items() if values]


def _sampled(rate: GroupResult | None) -> str:
    return "" if rate is None or rate.success is None else rate_text(rate, interval=False)


def evaluation_table(split: str, result: SplitResult) -> RenderableType:
    """Return one evaluation by site, by horizon and by template, and a line about lost episodes."""
    table = Table(title=_text(f"Success on {split} (% with 95 % intervals)"), title_justify="left")
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
            table.add_row(_text(prefix + name), Text(rate_text(rate)), str(rate.n))
    table.add_section()
    for k, value in result.pass_at.items():
        table.add_row(Text(f"pass@{k}"), f"{100 * value:.1f}", "")
    lost = sum(result.lost.values())
    lines = [planning_line(result.planning)] if result.planning else []
    return Group(table, *lines, lost_line(EpisodeCounts(result.n + lost, result.n, result.lost)))


def planning_line(numbers: Mapping[str, float]) -> Text:
    """Return in a sentence or two how often agents were stuck, and what planning did about it."""
    said = (
        f"Stuck at some point: {100 * numbers['stuck_share']:.1f} % of the episodes, in a cycle "
        f"{100 * numbers['cycle_share']:.1f} %. A decision took {numbers['decision_s_p50']:.3g} s (median), "
        f"{numbers['decision_s_p95']:.3g} s (95 %)."
    )
    if "replans" in numbers:
        said += (
            f" An episode was planned anew {numbers['replans']:.2f} times, asked again {numbers['retries']:.2f} times."
        )
    if "questions" in numbers:
        said += f" It took {numbers['questions']:.1f} questions, {numbers['thought']:.1f} of them with thought."
    return Text(said)


def lost_line(episodes: EpisodeCounts) -> Text:
    """Return one sentence that accounts for every episode."""
    if not episodes.failed:
        return Text(f"Episodes: {episodes.dispatched} dispatched, all judged.")
    lost = ", ".join(f"{count} {reason}" for reason, count in sorted(episodes.failed.items(), key=lambda kv: -kv[1]))
    total = sum(episodes.failed.values())
    return _text(
        f"Episodes: {episodes.dispatched} dispatched, {episodes.completed} judged, {total} lost and left out "
        f"of every rate ({lost})."
    )


@dataclass(frozen=True)
class _SplitTable:
    """A row for each site and a column for each evaluation: the first, and as many of the last as are wide enough."""

    split: str
    phases: Sequence[PhaseSummary]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        measured = [phase.evaluation[self.split] for phase in self.phases]
        sites = evaluated_sites(self.phases, self.split)
        tasks = max(result.n for result in measured)
        room = (options.max_width - max(map(len, [*sites, "lost"])) - _FRAME) // _COLUMN
        last = max(room - 1, 1)
        shown = [*self.phases[:1], *self.phases[1:][-last:]]
        results = [phase.evaluation[self.split] for phase in shown]
        title = _text(f"Success on {self.split} ({tasks} episodes; % with 95 % intervals)")
        table = Table("", title=title, title_justify="left")
        for phase in shown:
            table.add_column(_after(phase), justify="right", no_wrap=True)
        table.add_row("all", *map(_cell, results), end_section=True)
        for site in sites:
            cells = [_cell(result.by_site.get(site)) for result in results]
            table.add_row(_text(site), *cells, end_section=site == sites[-1])
        table.add_row("lost", *(str(sum(result.lost.values())) for result in results))
        yield table
        if left_out := self.phases[1:-last]:
            yield Text(f"Too wide for this terminal, in the report: {', '.join(map(_after, left_out))}")


_FRAME, _COLUMN = 4, 20
"""Characters beside the names of the rows, and of a column that holds ``50.0 [43.0, 57.0]``."""


def _text(text: str) -> Text:
    """Return what tasks, sites and failures are called as a terminal may show it."""
    return Text(printable(text))


def _after(phase: PhaseSummary) -> str:
    return f"phase {phase.phase}" if phase.phase else "before RL"


def _cell(rate: GroupResult | SplitResult | None) -> Text:
    return Text(rate_text(rate))


def rate_text(rate: GroupResult | SplitResult | None, interval: bool = True) -> str:
    """Return percent as ``61.0 [51.2, 70.0]``, or ``-`` where nothing was judged."""
    if rate is None or rate.success is None:
        return "-"
    text = f"{100 * rate.success:.1f}"
    return f"{text} [{100 * rate.low:.1f}, {100 * rate.high:.1f}]" if interval else text
