"""The display shows where a run is, in a terminal and in a log, and how long it will take."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from analysis.results import EpisodeCounts, GroupResult, LabelResult, PhaseSummary, SplitResult
from cluster.display.result_table import evaluation_table, result_table
from cluster.display.run_display import RunDisplay
from cluster.display.run_state import RunState, duration
from cluster.run_folder.summary import RunSummary
from learner.headway import Headway


class Clock:
    """A clock that stands still until it is moved."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def text_of(renderable: object, width: int = 140) -> str:
    buffer = io.StringIO()
    Console(file=buffer, width=width).print(renderable)
    return buffer.getvalue()


def test_time_left_is_known_after_one_phase_and_counts_down() -> None:
    state = RunState(phases=3, started=1.0)
    state.begin_phase(0, 1.0)
    assert state.seconds_left(500.0) is None
    state.begin_phase(1, 1000.0)
    assert state.seconds_left(1050.0) is None
    state.begin_phase(2, 1100.0)
    assert state.seconds_left(1100.0) == pytest.approx(200.0)
    assert state.seconds_left(1160.0) == pytest.approx(140.0)


def test_a_phase_that_takes_longer_than_the_last_is_estimated_from_its_stage() -> None:
    state = RunState(phases=2, started=1.0)
    state.begin_phase(1, 1.0)
    state.begin_phase(2, 11.0)
    state.begin_stage("rollouts", 100, 11.0)
    assert state.stage is not None
    state.stage.done = 20
    assert state.seconds_left(31.0) == pytest.approx(80.0)
    state.end_stage(31.0)
    assert state.seconds_left(31.0) == 0.0


def test_rates_do_not_exist_before_they_can_be_known() -> None:
    state = RunState(phases=1, started=1.0)
    state.begin_stage("rollouts", 10, 5.0)
    assert state.stage is not None
    assert state.stage.success is None
    assert state.stage.steps_per_second(6.0) is None
    state.stage.steps, state.stage.judged, state.stage.succeeded = 30, 4, 1
    assert state.stage.steps_per_second(8.0) == 10.0
    assert state.stage.success == 0.25


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.6, "1 min 00 s"), (185, "3 min 05 s"), (3720, "1 h 02 min"), (-3, "0 s")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_without_a_terminal_there_are_plain_lines_and_no_control_codes() -> None:
    buffer, clock = io.StringIO(), Clock()
    with RunDisplay(1, Console(file=buffer, width=60), line_interval_s=10, clock=clock) as display:
        display.phase(0)
        display.stage("clone")
        clock.now += 5
        display.losses({"clone": 1.25})
        display.phase(1)
        display.stage("rollouts", total=8)
        for done in range(1, 9):
            clock.now += 3
            display.update(done, judged=done - 1, succeeded=done // 2, lost=1, steps=6 * done)
        display.note("worker 1 was replaced [red]")
        display.finish()
    lines = buffer.getvalue().splitlines()
    assert "\x1b" not in buffer.getvalue()
    assert lines == [
        "warm start: clone",
        "warm start: clone done in 5 s, clone 1.25",
        "phase 1/1: rollouts (0/8)",
        "phase 1/1: rollouts 4/8, success 66.7%, 1 lost, 2.0 steps/s",
        "phase 1/1: rollouts 8/8, success 57.1%, 1 lost, 2.0 steps/s",
        "worker 1 was replaced [red]",
        "phase 1/1: rollouts done in 24 s, 8/8, success 57.1%, 1 lost, 2.0 steps/s",
    ]


def test_in_a_terminal_a_panel_shows_everything_and_is_gone_at_the_end() -> None:
    buffer, clock = io.StringIO(), Clock()
    console = Console(file=buffer, width=100, force_terminal=True)
    with RunDisplay(4, console, clock=clock) as display:
        display.phase(2)
        display.stage("rollouts", total=100)
        clock.now += 10
        display.update(40, judged=39, succeeded=13, lost=1, steps=400)
        display.losses({"actor": 0.5})
        display.result(0, 0.45)
        display.result(1, 0.525)
        shown = text_of(display._panel())
    for part in ("phase 2/4", "40/100", "success 33.3%", "1 lost", "40.0 steps/s", "actor 0.5", "before RL: 45.0%",
                 "after 1: 52.5%", "10 s so far", "Ctrl-C"):  # fmt: skip
        assert part in shown
    assert buffer.getvalue().endswith("\x1b[2K")
    assert "\x1b[?25h" in buffer.getvalue()


def split_result(success: float, lost: int = 0) -> SplitResult:
    group = GroupResult(success, 50, success - 0.1, success + 0.1)
    groups = {"shop": group, "forum": GroupResult(None, 0, 0, 1)}
    return SplitResult(success, 100, success - 0.07, success + 0.07, groups, {"1-5": group}, {"shop.buy": group},
                       {"infra/x": lost} if lost else {})  # fmt: skip


def test_the_finishing_table_shows_every_phase_site_interval_and_loss() -> None:
    phases = (
        PhaseSummary(0, {"test": split_result(0.5)}, seconds={"clone": 90.0}),
        PhaseSummary(
            1, {"test": split_result(0.61, lost=3)}, GroupResult(0.4, 200, 0.3, 0.5), seconds={"rollouts": 30}
        ),
    )
    counts = EpisodeCounts(300, 297, {"infra/browser_crashed": 3})
    shown = text_of(result_table(RunSummary("r", "h", {}, {}, phases, counts)))
    for part in ("Success on test", "before RL", "50.0 [43.0, 57.0]", "phase 1", "61.0 [54.0, 68.0]", "shop",
                 "40.0", "1 min 30 s", "3 lost", "3 infra/browser_crashed"):  # fmt: skip
        assert part in shown
    assert len({len(line) for line in shown.splitlines() if line.startswith(("│", "┃"))}) == 1


def test_the_finishing_table_tells_of_the_rollouts_once_and_of_no_split() -> None:
    rollout, labelled = GroupResult(0.4, 200, 0.3, 0.5), GroupResult(0.375, 200, 0.3, 0.5)
    labels = LabelResult({}, {}, {}, labelled, None, 0.0)
    splits = {"test": split_result(0.61), "test_templates": split_result(0.2)}
    phases = (PhaseSummary(0, splits), PhaseSummary(1, splits, rollout, seconds={"rollouts": 30}, labels=labels))
    shown = text_of(result_table(RunSummary("r", "h", {}, {}, phases, EpisodeCounts())))
    assert "Training rollouts, sampled (% success): phase 1 40.0" in shown
    assert "Training rollouts by judges' labels (% success): phase 1 37.5" in shown
    assert "Wall time: phase 1 30 s" in shown
    assert (shown.count("40.0"), shown.count("37.5")) == (1, 1)


def test_where_the_terminal_is_narrow_the_first_and_the_last_evaluations_are_shown_and_the_others_named() -> None:
    phases = tuple(PhaseSummary(n, {"test": split_result(0.3 + n / 100)}) for n in range(6))
    shown = text_of(result_table(RunSummary("r", "h", {}, {}, phases, EpisodeCounts(600, 600, {}))), width=80)
    for part in (
        "30.0 [23.0, 37.0]",
        "34.0 [27.0, 41.0]",
        "35.0 [28.0, 42.0]",
        "in the report: phase 1, phase 2, phase 3",
    ):
        assert part in shown
    assert "32.0" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown


def test_one_evaluation_is_shown_by_every_group() -> None:
    shown = text_of(evaluation_table("test", split_result(0.5, lost=2)))
    assert "Stuck" not in shown
    for part in ("site shop", "site forum", "expert's steps 1-5", "shop.buy", "2 lost and left out"):
        assert part in shown


def test_an_evaluation_says_how_often_agents_were_stuck_and_what_planning_did() -> None:
    numbers = {"stuck_share": 0.25, "cycle_share": 0.125, "decision_s_p50": 0.021, "decision_s_p95": 0.05}
    shown = " ".join(text_of(evaluation_table("test", replace(split_result(0.5), planning=numbers))).split())
    assert "Stuck at some point: 25.0 % of the episodes, in a cycle 12.5 %. A decision took 0.021 s (median)" in shown
    assert "planned anew" not in shown
    numbers |= {"replans": 0.5, "retries": 1.25, "questions": 9.0, "thought": 2.0}
    shown = " ".join(text_of(evaluation_table("test", replace(split_result(0.5), planning=numbers))).split())
    assert "planned anew 0.50 times, asked again 1.25 times. It took 9.0 questions, 2.0 of them with thought." in shown


ORDERS = "\x1b[2J\x9b31m"
"""Clears the screen and turns it red."""


def test_names_give_no_orders_to_the_terminal() -> None:
    name, group = f"it{ORDERS}", GroupResult(0.5, 50, 0.4, 0.6)
    result = SplitResult(0.5, 50, 0.4, 0.6, {name: group}, {}, {name: group}, {name: 1})
    phases = (PhaseSummary(0, {name: result}),)
    tables = (
        evaluation_table(name, result),
        result_table(RunSummary("r", "h", {}, {}, phases, EpisodeCounts(51, 50, {name: 1}))),
    )
    buffer = io.StringIO()
    display = RunDisplay(1, Console(file=buffer, width=120))
    display.stage(f"stage{ORDERS}", total=2)
    display.losses({f"loss{ORDERS}": 1.0})
    display.note(ORDERS)
    display.finish()
    for text in (*map(text_of, tables), buffer.getvalue()):
        assert r"\x1b[2J" in text
        assert "\x1b" not in text
        assert "\x9b" not in text


def test_the_learners_headway_is_shown_while_it_trains_and_not_after() -> None:
    clock, out = Clock(), io.StringIO()
    display = RunDisplay(2, Console(file=out, width=140), line_interval_s=15.0, clock=clock)
    display.phase(1)
    display.stage("critics")
    clock.now += 20
    display.headway(Headway(signs=3))
    display.headway(Headway("value", 12, 40, 3_000, 5))
    clock.now += 5
    display.headway(Headway("value", 13, 40, 3_200, 6))
    assert "learner" in text_of(display._panel())
    display.stage("actor")
    assert "learner" not in text_of(display._panel())
    shown = [line for line in out.getvalue().splitlines() if "updates" in line]
    assert shown == ["phase 1/2: critics value: 12/40 updates, 3,000 tokens"]
