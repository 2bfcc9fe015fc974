"""The failure report counts what was played, by phase, policy and site, with hand-worked numbers."""

from __future__ import annotations

import pytest

from analysis.failures import failure_report, milestone_map
from analysis.routes import Route
from analysis.settings import AnalysisSettings
from records.episodes import Source
from tests.analysis.played import EXIT, click, route

HELP = click(2, "Help")
WRONG = (click(0, "Orders"), HELP, EXIT)
STUCK = (click(0, "Orders"), HELP, HELP, HELP, HELP)


def episodes() -> list[Route]:
    return [
        route(*WRONG, name="a", site="shop", phase=1),
        route(*STUCK, name="b", site="forum", phase=1, task="t2", horizon=12),
        route(*WRONG, name="c", site="shop", phase=1, outcome=1.0),
        route(*WRONG, name="d", site="shop", phase=0, source=Source.ROLLOUT),
        route(*WRONG, name="e", phase=0, source=Source.DEMONSTRATION),
    ]


def test_modes_are_shared_out_by_phase_and_site_without_demonstrations() -> None:
    report = failure_report("mine", episodes(), AnalysisSettings())
    assert (report.episodes, report.everything.judged, report.everything.failures) == (4, 4, 3)
    evaluated = report.by_phase["evaluation 1"]
    assert (evaluated.judged, evaluated.failures) == (3, 2)
    assert {mode: share.success for mode, share in evaluated.shares.items()} == {
        "wrong termination": 0.5, "stuck midway": 0.5, "no reasonable attempt": 0.0, "other": 0.0
    }  # fmt: skip
    assert evaluated.stuck_rate.success == pytest.approx(1 / 3)
    assert evaluated.stuck_rate.low < 1 / 3 < evaluated.stuck_rate.high
    assert list(report.by_phase) == ["evaluation 1", "rollout 0"]
    assert report.by_site["forum"].shares["stuck midway"].success == 1.0
    assert {bucket: rate.success for bucket, rate in report.by_horizon["evaluation 1"].items()} == {
        "6-10": 0.5, "11-15": 0.0
    }  # fmt: skip
    assert [(f.episode_id, f.mode, f.key_step) for f in report.failed] == [
        ("a", "wrong termination", 2), ("b", "stuck midway", 1), ("d", "wrong termination", 2)
    ]  # fmt: skip


def test_shares_of_modes_are_as_sure_as_their_tasks_are_many() -> None:
    """Two tasks, one of them always stuck, ten passes of each."""
    played = [
        route(*(STUCK if task == "a" else WRONG), name=f"{task}{n}", task=task) for task in "ab" for n in range(10)
    ]
    shares = failure_report("mine", played, AnalysisSettings()).everything.shares
    assert shares["stuck midway"].success == 0.5
    assert shares["stuck midway"].low < 0.15
    assert shares["stuck midway"].high > 0.85


def test_pass_at_k_is_there_where_most_tasks_were_played_so_often() -> None:
    outcomes = {"t1": [1.0, 0.0, 0.0], "t2": [0.0, 0.0, 0.0], "t3": [1.0]}
    played = [
        route(*WRONG, task=task, name=f"{task}-{n}", outcome=outcome)
        for task, passes in outcomes.items()
        for n, outcome in enumerate(passes)
    ]
    report = failure_report("mine", played, AnalysisSettings())
    # pass@1 = (1/3 + 0 + 1) / 3; pass@2 of t1 is 1 - C(2, 2) / C(3, 2) = 2/3, of t2 it is 0, t3 was played once.
    assert report.pass_at == {"evaluation 1": {"1": pytest.approx(4 / 9), "2": pytest.approx(1 / 3)}}
    assert failure_report("mine", episodes(), AnalysisSettings()).pass_at == {}


def test_a_milestone_stays_as_an_ended_episode_left_it() -> None:
    short = route(HELP, milestones=[[True, False]])
    long = route(HELP, HELP, HELP, milestones=[[False, False], [True, False], [True, True]])
    drawn = milestone_map([short, long])
    assert drawn is not None
    assert drawn.share == ((0.5, 1.0, 1.0, 1.0), (0.0, 0.0, 0.5, 0.5))
    assert milestone_map([route(HELP)]) is None
