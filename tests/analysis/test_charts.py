"""Every chart holds its legend: no entry of it is cut off, however many there are and however long they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from analysis import charts
from analysis.charts import site_chart, success_chart, time_chart
from analysis.failure_charts import horizon_chart, limit_chart, mode_chart
from analysis.failures import failure_report
from analysis.results import GroupResult, PhaseSummary, SplitResult
from analysis.routes import Route
from analysis.settings import AnalysisSettings
from records.episodes import Source
from tests.analysis.played import EXIT, click, route

SPLITS = ("test", "validation_templates", "test_templates", "a split with a name as long as it gets")
STAGES = ("clone", "critics", "publish", "evaluate", "rollouts", "label", "replay", "actor", "curriculum", "distil")


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are drawn during a test."""
    made: list[Figure] = []

    def figure(*args: object, **kwargs: object) -> Figure:
        made.append(Figure(*args, **kwargs))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(charts, "Figure", figure)
    return made


def phases(count: int) -> list[PhaseSummary]:
    group = GroupResult(0.5, 10, 0.4, 0.6)
    result = SplitResult(0.5, 40, 0.4, 0.6, dict.fromkeys(("admin", "code", "forum", "shop"), group))
    return [
        PhaseSummary(n, dict.fromkeys(SPLITS, result), group if n else None, seconds=dict.fromkeys(STAGES, 3.0))
        for n in range(count)
    ]


def played(count: int) -> list[Route]:
    return [
        route(click(0, "a"), EXIT, name=f"{n}{split}{task}", task=str(task), outcome=float(task), horizon=3 + 9 * task,
              source=Source.EVALUATION, phase=n, split=split)
        for n in range(count) for split in SPLITS for task in range(2)
    ]  # fmt: skip


def legends(figure: Figure) -> list[Legend]:
    return [*figure.legends, *(legend for axes in figure.axes if (legend := axes.get_legend()))]


def cut_off(figure: Figure) -> list[str]:
    """Return the entries of a figure's legends that do not lie in it whole."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    whole = figure.bbox.padded(0.5)
    entries = [(text.get_text(), part.get_window_extent(canvas.get_renderer()))
               for legend in legends(figure)
               for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True)
               for part in (handle, text)]  # fmt: skip
    assert all(box.width > 0 for _, box in entries)
    return [name for name, box in entries if not all(whole.contains(*corner) for corner in box.corners())]


@pytest.mark.parametrize("count", [0, 1, 2, 10])
@pytest.mark.parametrize("draw", [success_chart, site_chart, time_chart])
def test_a_charts_legend_is_in_it_whole(
    draw: Callable[[Sequence[PhaseSummary]], str], count: int, figures: list[Figure]
) -> None:
    draw(phases(count))
    assert [name for figure in figures for name in cut_off(figure)] == []
    entries = [len(legend.get_texts()) for figure in figures for legend in legends(figure)]
    sampled = count > 1
    expected = {success_chart: len(SPLITS) + sampled, site_chart: len(SPLITS), time_chart: len(STAGES)}[draw]
    assert entries == ([expected] if count else [])


@pytest.mark.parametrize("count", [0, 1, 2, 10, 30])
def test_so_is_that_of_a_chart_of_failures(count: int, figures: list[Figure]) -> None:
    report = failure_report("mine", played(count), AnalysisSettings())
    mode_chart(report.by_phase)
    horizon_chart(report.by_horizon)
    limit_chart(report.by_limit)
    assert [name for figure in figures for name in cut_off(figure)] == []
    assert [len(legend.get_texts()) for figure in figures for legend in legends(figure)] == (
        [4, count, count * len(SPLITS)] if count else []
    )


def test_a_legend_leaves_the_axes_as_high_as_they_are_without_one(figures: list[Figure]) -> None:
    for count in (1, 20):
        horizon_chart(failure_report("mine", played(count), AnalysisSettings()).by_horizon)
    few, many = (figure.axes[0].get_position().height * figure.get_figheight() for figure in figures)
    assert many == pytest.approx(few, rel=0.1)
