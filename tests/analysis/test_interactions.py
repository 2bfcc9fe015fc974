"""One evaluation tells success at every limit of interactions, with hand-worked numbers."""

from __future__ import annotations

import pytest

from analysis.failures import failure_report
from analysis.interactions import LimitResult, by_limit, first_and_last
from analysis.results import GroupResult
from analysis.settings import AnalysisSettings
from records.episodes import Source
from tests.analysis.played import EXIT, click, route

LOOK = click(1, "Help")
PLAYED = [
    route(LOOK, EXIT, outcome=1.0, name="two", task="a"),
    route(LOOK, LOOK, LOOK, EXIT, outcome=1.0, name="four", task="b"),
    route(LOOK, LOOK, EXIT, outcome=0.0, name="gave up", task="c"),
    route(LOOK, LOOK, LOOK, outcome=0.0, name="cut at three", task="d"),
]


def rates(curve: dict[str, LimitResult]) -> list[float | None]:
    return [at.rate.success for at in curve.values()]


def test_an_episode_counts_from_the_limit_that_its_last_action_needs() -> None:
    curve = by_limit(PLAYED)
    assert list(curve) == ["1", "2", "3", "4"]
    assert rates(curve) == [0.0, 0.25, 0.25, 0.5]
    assert {at.rate.n for at in curve.values()} == {4}
    # Wilson for 1 of 4: centre (0.25 + z²/8) / (1 + z²/4) = 0.3725, half-width 0.3269, z = 1.96
    assert (curve["2"].rate.low, curve["2"].rate.high) == (
        pytest.approx(0.0456, abs=1e-4),
        pytest.approx(0.6994, abs=1e-4),
    )
    assert by_limit([]) == {}


def test_episodes_of_one_task_are_no_tasks_of_their_own() -> None:
    """Four tasks, two of them always solved, six passes of each: no surer than four episodes."""
    again = [
        route(LOOK, EXIT, outcome=float(task in "ab"), name=f"{task}{n}", task=task)
        for task in "abcd"
        for n in range(6)
    ]
    rate = by_limit(again)["2"].rate
    assert (rate.success, rate.n) == (0.5, 24)
    assert (rate.low, rate.high) == pytest.approx((0.12, 0.88), abs=0.03)


def test_failures_that_their_own_limit_ended_are_told_where_more_might_have_helped() -> None:
    curve = by_limit(PLAYED)
    assert [at.cut for at in curve.values()] == [0, 0, 0, 1], "ended at three: known at 3, not at 4"
    given_up = [r for r in PLAYED if r.episode_id != "cut at three"]
    assert [at.cut for at in by_limit(given_up).values()] == [0, 0, 0, 0], "who exits would have exited"
    solved_at_the_limit = [route(LOOK, LOOK, outcome=1.0), PLAYED[1]]
    assert [at.cut for at in by_limit(solved_at_the_limit).values()] == [0, 0, 0, 0]


def test_the_last_point_is_the_evaluations_own_success() -> None:
    report = failure_report("mine", PLAYED, AnalysisSettings())
    curve = report.by_limit["evaluation 1, test"]
    assert curve["4"].rate == GroupResult(0.5, 4, pytest.approx(0.15, abs=0.01), pytest.approx(0.85, abs=0.01))
    assert rates(curve) == [0.0, 0.25, 0.25, 0.5]


def test_curves_are_of_evaluations_by_split() -> None:
    others = [
        route(LOOK, EXIT, outcome=1.0, split="test_long"),
        route(LOOK, EXIT, outcome=1.0, source=Source.ROLLOUT),
        route(EXIT, outcome=1.0, source=Source.DEMONSTRATION),
        route(EXIT, outcome=1.0, phase=0),
        route(EXIT, outcome=1.0, phase=3),
    ]
    report = failure_report("mine", [*PLAYED, *others], AnalysisSettings())
    assert list(report.by_limit) == [
        "evaluation 0, test", "evaluation 1, test", "evaluation 1, test_long", "evaluation 3, test"
    ]  # fmt: skip
    assert list(first_and_last(report.by_limit)) == ["evaluation 0, test", "evaluation 3, test"]
    assert first_and_last({}) == {}
