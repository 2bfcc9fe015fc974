"""The autorater: what a language model says of recorded episodes, as labels of milestones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judges.contract import check_judge
from judges.kinds import Judges
from judges.of_milestones.autorater import Autorater
from judges.settings import AutoraterSettings
from records.deadline import Deadline
from records.episodes import Milestone, Task
from records.failures import EpisodeFailed, FailureKind
from records.labels import LabelSubject, misfit
from tests.judges.of_milestones.scripted_model import ScriptedModel
from tests.judges.of_milestones.test_recorded import episode, step

TASK = Task(
    "t", ("shop",), "Buy it", "__SHOP__/", {}, "shop.t",
    milestones=(Milestone("the product is open", {}), Milestone("it is in the cart", {}), Milestone("it is paid", {})),
)  # fmt: skip
PLAYED = episode(
    step('do(action="Click", element="4")', "link View"), step("go_backward()"), step('exit(message="ok")')
)


def said(*firsts: int | None) -> dict[str, Any]:
    return {
        "milestones": [
            {"milestone": number, "reason": f"because {number}", "first_state": first}
            for number, first in enumerate(firsts, start=1)
        ]
    }


def rater(*replies: Any, **settings: Any) -> tuple[Autorater, ScriptedModel]:
    model = ScriptedModel(*replies)
    return Autorater(model, AutoraterSettings(model="m", **settings)), model


async def test_the_first_state_of_each_milestone_becomes_a_monotone_label() -> None:
    judge, _ = rater(said(2, 4, None))
    label = await judge.label(PLAYED, TASK, Deadline(5))
    assert label.values.tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 0]]
    assert label.descriptions == tuple(one.description for one in TASK.milestones)
    assert (label.judge, label.model, label.prompt, label.cost_usd) == (
        "autorater", "scripted", "milestones-reached/2", 0.001
    )  # fmt: skip
    assert json.loads(label.evidence) == ["because 1", "because 2", "because 3"]
    assert not misfit(label, PLAYED, LabelSubject.MILESTONES)


async def test_it_is_shown_the_task_the_milestones_and_each_state_in_so_many_characters() -> None:
    judge, model = rater(said(1, 1, 1), page_characters=10)
    await judge.label(PLAYED, TASK, Deadline(5))
    shown = json.loads(str(model.asked[0].parts[0]))
    assert shown["task"] == "Buy it"
    assert shown["milestones"] == {"1": "the product is open", "2": "it is in the cart", "3": "it is paid"}
    assert [state["state"] for state in shown["states"]] == [1, 2, 3, 4]
    assert len(shown["states"][0]["page"]) == 10
    assert shown["states"][0]["element"] == "link View"


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [(said(1, 2), "1 to 3 once"), (said(1, 2, 5), "from 1 to 4 or null"), (said(0, 2, 3), "found 0")],
)
async def test_a_wrong_answer_is_asked_for_again(wrong: Any, complaint: str) -> None:
    judge, model = rater(wrong, said(1, 2, 3))
    await judge.label(PLAYED, TASK, Deadline(5))
    assert complaint in str(model.asked[1].parts[-1])


@pytest.mark.parametrize("reply", ["All of them!", said(9, 9, 9)])
async def test_no_usable_answer_is_a_judges_failure_and_no_label(reply: Any) -> None:
    judge, _ = rater(reply)
    with pytest.raises(EpisodeFailed) as failed:
        await judge.label(PLAYED, TASK, Deadline(5))
    assert failed.value.failure.kind is FailureKind.JUDGE


async def test_it_keeps_the_contract_of_judges() -> None:
    judge, model = rater("never asked: the task has no milestones")
    await check_judge(judge)
    assert not model.asked


def test_a_recipe_names_its_model() -> None:
    with pytest.raises(ValueError, match=r"judges.autorater.model: expected the name"):
        Judges().of_episodes("autorater")
