"""Milestones distilled from successes: who is asked, when, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from judges.of_milestones.distillation import Distilled, distil
from records.deadline import Deadline
from records.episodes import Task, Trajectory
from records.failures import EpisodeFailed
from tests.judges.of_milestones.scripted_model import ScriptedModel
from tests.judges.of_milestones.test_recorded import episode, step

TASK = Task("t", ("shop",), "Buy the Blue Kettle", "__SHOP__/", {}, "shop.t", parameters={"product": "Blue Kettle"})
FIRST = {"milestones": ["Search for <product>", "Click the button Buy"]}
SHORTER = {"milestones": ["Click the button Buy"]}


def attempt(name: str, steps: int, success: bool = True) -> Trajectory:
    clicks = [step('do(action="Click", element="4")', "link View")] * (steps - 1)
    played = episode(*clicks, step('exit(message="done")'))
    return replace(played, episode_id=name, outcome=float(success))


async def learn(model: ScriptedModel, known: Distilled | None, *episodes: Trajectory) -> Distilled | None:
    return await distil(model, known, TASK, episodes, Deadline(5))


async def test_a_first_success_teaches_and_the_shortest_counts() -> None:
    model = ScriptedModel(FIRST)
    found = await learn(model, None, attempt("a", 5), attempt("b", 3), attempt("c", 2, success=False))
    assert found == Distilled(tuple(FIRST["milestones"]), 3, "scripted", "distilled/1", 0.001)
    shown = json.loads(str(model.asked[0].parts[0]))
    assert shown["actions"] == ["Click the link View"] * 2 + ["Answer done"]
    assert shown["parameters"] == {"product": "Blue Kettle"}


async def test_failures_teach_nothing_and_nobody_is_asked() -> None:
    model = ScriptedModel(FIRST)
    assert await learn(model, None, attempt("a", 3, success=False)) is None
    assert not model.asked


async def test_a_shorter_success_refines_and_one_as_long_does_not() -> None:
    model = ScriptedModel(FIRST, SHORTER)
    known = await learn(model, None, attempt("a", 4))
    assert await learn(model, known, attempt("b", 4)) is known
    refined = await learn(model, known, attempt("c", 2))
    assert refined is not None
    assert (refined.milestones, refined.steps, refined.prompt) == (("Click the button Buy",), 2, "distilled-refined/1")
    assert refined.cost_usd == pytest.approx(0.002)
    assert json.loads(str(model.asked[1].parts[0]))["known milestones"] == FIRST["milestones"]


async def test_what_belongs_to_one_task_must_be_a_placeholder() -> None:
    model = ScriptedModel({"milestones": ["Search for blue kettle"]}, FIRST)
    assert (await learn(model, None, attempt("a", 3))) is not None
    assert "expected <product> in place of 'Blue Kettle'" in str(model.asked[1].parts[-1])


@pytest.mark.parametrize(
    ("value", "said", "kept"),
    [
        (3, "Type 3 into the textbox Quantity", False),
        (3, "Type 30 into the textbox Quantity", True),
        (2.5, "Choose 2.5 kg", False),
        (2.5, "Choose 12.5 kg", True),
        ("PA", "Choose PA as the combobox State", False),
        ("PA", "Open the PAGE of states", True),
        ("a", "Open a product", True),
        (True, "Say True to it", True),
        ("Blue Kettle", "Search for blue kettles", False),
    ],
)
async def test_numbers_and_short_texts_must_be_placeholders_too(value: object, said: str, kept: bool) -> None:
    model, task = ScriptedModel({"milestones": [said]}, SHORTER), replace(TASK, parameters={"it": value})
    found = await distil(model, None, task, [attempt("a", 3)], Deadline(5))
    assert found is not None
    assert (found.milestones == (said,)) is kept


@pytest.mark.parametrize("reply", ['["Search for it"]', "1. Search", {"milestones": []}, {"milestones": ["a", "A"]}])
async def test_other_answers_are_a_judges_failure(reply: object) -> None:
    with pytest.raises(EpisodeFailed):
        await learn(ScriptedModel(reply), None, attempt("a", 3))  # type: ignore[arg-type]
