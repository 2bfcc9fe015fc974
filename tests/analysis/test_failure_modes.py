"""Each rule of the failure analyzer holds where it should, in the paper's order, and names the step that went wrong."""

from __future__ import annotations

import pytest

from analysis.failure_modes import Diagnosis, Mode, diagnose
from analysis.references import References
from analysis.routes import Route
from analysis.settings import AnalysisSettings
from records.episodes import Termination
from tests.analysis.played import EXIT, click, route

SETTINGS = AnalysisSettings()
CART, ORDERS, HELP, LAMP, VASE = (click(i, name) for i, name in enumerate(("Cart", "Orders", "Help", "Lamp", "Vase")))
SUCCESS = route(ORDERS, LAMP, CART, EXIT, outcome=1.0, name="good")


def found(failed: Route, *successes: Route) -> Diagnosis:
    return diagnose(failed, References([failed, *successes]), SETTINGS)


def test_an_exit_that_the_evaluator_refuses_is_a_wrong_termination() -> None:
    diagnosis = found(route(ORDERS, VASE, CART, EXIT), SUCCESS)
    assert diagnosis.mode is Mode.WRONG_TERMINATION
    assert (diagnosis.key_step, diagnosis.reason) == (1, "leaves all successes of the task")


def test_an_exit_comes_before_a_loop_in_the_order_of_rules() -> None:
    assert found(route(*[HELP] * 8, EXIT, pages=["same"] * 9)).mode is Mode.WRONG_TERMINATION


def test_an_exit_among_the_first_steps_attempted_nothing_unless_an_expert_needs_no_more() -> None:
    assert found(route(ORDERS, EXIT)).mode is Mode.NO_ATTEMPT
    assert found(route(EXIT)).key_step == 0
    assert found(route(ORDERS, EXIT, horizon=2)).mode is Mode.WRONG_TERMINATION
    assert found(route(ORDERS, LAMP, EXIT)).mode is Mode.WRONG_TERMINATION


def test_without_an_expert_the_shortest_success_says_what_is_early() -> None:
    short = route(ORDERS, EXIT, outcome=1.0, name="good")
    assert found(route(HELP, EXIT, horizon=0), short).mode is Mode.WRONG_TERMINATION
    assert found(route(HELP, EXIT, horizon=0), SUCCESS).mode is Mode.NO_ATTEMPT


def test_the_same_action_over_and_over_is_stuck_whatever_the_pages_do() -> None:
    diagnosis = found(route(ORDERS, LAMP, *[CART] * 4))
    assert (diagnosis.mode, diagnosis.key_step) == (Mode.STUCK, 2)
    assert found(route(ORDERS, LAMP, VASE, *[CART] * 3)).mode is Mode.OTHER


def test_who_was_ended_for_standing_still_is_stuck_where_that_began() -> None:
    def ended(*moves: tuple[str, str | None]) -> Diagnosis:
        return found(route(*moves, termination=Termination.STANDSTILL))

    repeats = ended(ORDERS, LAMP, *[CART] * 2)
    assert (repeats.mode, repeats.key_step) == (Mode.STUCK, 2)
    typed = ('do(action="Type", argument="a", element="3")', "textbox Name")
    scattered = ended(ORDERS, typed, LAMP, typed, VASE, typed)
    assert (scattered.mode, scattered.key_step) == (Mode.STUCK, 1)
    unread = ended(ORDERS, LAMP, ("I wonder", None), ("What now", None))
    assert (unread.mode, unread.key_step) == (Mode.STUCK, 2)
    assert "last 2 replies" in unread.rule
    assert ended(("I think so", None), ("So be it", None)).mode is Mode.NO_ATTEMPT
    assert found(route(ORDERS, LAMP, *[CART] * 2)).mode is Mode.OTHER


@pytest.mark.parametrize("cycle", [[CART], [CART, HELP], [CART, HELP, VASE], [CART, HELP, VASE, ORDERS]])
def test_a_cycle_in_the_same_states_is_stuck_and_its_entry_is_the_key_step(cycle: list[tuple[str, str]]) -> None:
    moves = [ORDERS, LAMP, *cycle * 3, VASE, HELP]
    pages = ["a", "b", *[f"in {i}" for i in range(len(cycle))] * 3, "y", "z"]
    diagnosis = found(route(*moves, pages=pages), SUCCESS)
    assert (diagnosis.mode, diagnosis.key_step) == (Mode.STUCK, 2)
    assert "3 times in a row" in diagnosis.rule


def test_the_same_actions_on_ever_new_pages_are_no_cycle() -> None:
    assert found(route(*[CART, HELP] * 5)).mode is Mode.OTHER


def test_who_reaches_the_right_page_and_never_exits_attempted_nothing() -> None:
    reached = [[False], [False], [True], [True], [True]]
    diagnosis = found(route(ORDERS, LAMP, CART, HELP, VASE, milestones=reached))
    assert (diagnosis.mode, diagnosis.key_step) == (Mode.NO_ATTEMPT, 2)
    assert found(route(ORDERS, LAMP, CART, HELP, VASE, milestones=[[False]] * 5)).mode is Mode.OTHER


def test_without_milestones_the_page_on_which_a_success_exits_is_the_right_one() -> None:
    seen = ["page 0", "page 1", "page 3", "elsewhere", "page 9"]
    diagnosis = found(route(ORDERS, LAMP, CART, HELP, VASE, pages=seen), SUCCESS)
    assert (diagnosis.mode, diagnosis.key_step) == (Mode.NO_ATTEMPT, 2)


def test_prose_instead_of_actions_attempted_nothing() -> None:
    diagnosis = found(route(("I think so", None), ("So be it", None), ORDERS, LAMP, HELP))
    assert (diagnosis.mode, diagnosis.key_step) == (Mode.NO_ATTEMPT, 0)
    missing = ('do(action="Click", element="99")', None)
    other = ('do(action="Click", element="98")', None)
    assert found(route(missing, other, ORDERS, LAMP, HELP)).mode is Mode.NO_ATTEMPT
    assert found(route(missing, ORDERS, HELP, LAMP, VASE)).mode is Mode.OTHER


def test_who_begins_like_no_success_and_reaches_nothing_attempted_nothing() -> None:
    wanders = (HELP, VASE, ORDERS, LAMP)
    start = [[True, False, False]] * 4
    assert found(route(*wanders, milestones=start), SUCCESS).mode is Mode.NO_ATTEMPT
    assert found(route(*wanders, milestones=[*start[:3], [True, True, False]]), SUCCESS).mode is Mode.OTHER
    assert found(route(*wanders[::-1], milestones=start), SUCCESS).mode is Mode.OTHER
    assert found(route(*wanders, milestones=start)).mode is Mode.OTHER  # nothing to hold it against


def test_other_tasks_of_the_template_are_compared_by_what_the_instruction_names() -> None:
    sold = route(ORDERS, VASE, CART, EXIT, outcome=1.0, task="buy-2", intent="Buy the vase")
    diagnosis = found(route(ORDERS, LAMP, HELP, EXIT), sold)
    assert (diagnosis.key_step, diagnosis.reason) == (2, "leaves all successes of the template")


def test_a_route_that_stops_on_the_way_of_a_success_went_wrong_at_its_last_step() -> None:
    assert found(route(ORDERS, LAMP, CART), SUCCESS).key_step == 2


def test_without_successes_the_step_after_the_last_milestone_is_the_key_step() -> None:
    reached = [[False, False], [True, False], [True, False], [True, False]]
    assert found(route(ORDERS, HELP, CART, VASE, milestones=reached)).key_step == 1
    assert found(route(ORDERS, HELP, CART, VASE)).key_step is None


def test_a_success_is_no_failure() -> None:
    with pytest.raises(ValueError, match="expected a judged failure"):
        found(SUCCESS)
