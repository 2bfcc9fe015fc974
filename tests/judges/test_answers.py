"""An answer as a milestone: which tasks get it, what passes it, and that it says what the evaluator says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from judges.answers import ANSWERED, is_right, with_answer
from judges.evaluators import evaluate
from judges.interface import EndedEpisode
from judges.milestones import Acted, check, validate
from judges.rule_errors import RuleError
from records.environment import Observation
from records.episodes import Milestone, Task
from sites.registry import SITES
from sites.tasks import task_set

PAGE = Observation("", "__SHOP__/", "", "", ())
SEEN = Milestone("the page is open", {"url": "__SHOP__/*"})


def task(references: dict[str, Any], *kinds: str, milestones: tuple[Milestone, ...] = (SEEN,)) -> Task:
    evaluation = {"eval_types": list(kinds or ("string_match",)), "reference_answers": references}
    return Task("t", ("shop",), "How many?", "__SHOP__/", evaluation, "shop.t", {}, milestones=milestones)


@pytest.mark.parametrize(
    ("references", "right", "wrong"),
    [
        ({"exact_match": "12"}, ["12", " 12", "'12'"], ["120", "", "twelve"]),
        ({"must_include": ["Main Street", "7"]}, ["Main Street 7", "7, main street"], ["Main Street", "7"]),
        ({"exact_match": "N/A", "fuzzy_match": "N/A"}, ["N/A", "n/a"], ["none", "0"]),
        ({"one_of": ["red", "blue"]}, ["red", "Blue"], ["green"]),
    ],
)
def test_the_right_answer_is_the_last_milestone(references: dict[str, Any], right: list[str], wrong: list[str]) -> None:
    asked = with_answer(task(references))
    assert asked.milestones[:-1] == (SEEN,)
    last = asked.milestones[-1]
    assert last.description == ANSWERED
    validate(last.check)
    for answer in right:
        assert check(last.check, PAGE, [Acted("exit", "", answer)]), answer
    for answer in wrong:
        assert not check(last.check, PAGE, [Acted("exit", "", answer)]), answer
    assert not check(last.check, PAGE, [Acted("type", "Search", right[0])]), "who types it has not answered"
    assert not check(last.check, PAGE, [])


@pytest.mark.parametrize(
    "asked",
    [
        task({"fuzzy_match": ["about a week"]}),
        task({"must_include": ["week"], "fuzzy_match": ["about a week"]}),
        task({"fuzzy_match": "N/A"}),
        task({"exact_match": "12"}, "url_match"),
        task({"exact_match": "12"}, milestones=()),
    ],
    ids=["meaning", "meaning beside a rule", "meaning of N/A", "no question", "no milestones"],
)
def test_others_stay_as_they_are(asked: Task) -> None:
    assert with_answer(asked) == asked


def test_an_answer_that_needs_a_judge_is_not_right_here() -> None:
    assert not is_right({"fuzzy_match": ["about a week"]}, "seven days")
    assert not is_right({"exact_match": "12"}, None)


@pytest.mark.parametrize("wrong", [{}, [], {"exact": "12"}, {"exact_match": 12}])
def test_references_that_cannot_be_read_are_refused(wrong: object) -> None:
    with pytest.raises(RuleError):
        is_right(wrong, "12")
    with pytest.raises(ValueError, match=r"^here\.answer: "):
        validate({"answer": wrong}, "here")


async def test_it_says_of_every_question_of_the_sites_what_the_evaluator_says() -> None:
    tasks = [with_answer(one) for one in task_set(0, tuple(SITES), "train", 300)]
    questions = [one for one in tasks if one.evaluation["eval_types"] == ["string_match"]]
    assert len({one.template for one in questions}) > 20
    assert all(one.milestones[-1].description == ANSWERED for one in questions)
    assert all(len(one.milestones) == 4 for one in tasks if "string_match" not in one.evaluation["eval_types"])
    others = [one.evaluation["reference_answer_raw_annotation"] for one in questions]
    for number, one in enumerate(questions):
        right = one.evaluation["reference_answer_raw_annotation"]
        for answer in (right, others[number - 1], f"{right}.5", "N/A", ""):
            # Without a judge of meaning: exact rules stand beside the fuzzy one for "N/A".
            judged = replace(one, evaluation=_without_meaning(one.evaluation))
            verdict = await evaluate(EndedEpisode(judged, answer, None))  # type: ignore[arg-type]
            reached = check(one.milestones[-1].check, PAGE, [Acted("exit", "", answer)])
            assert reached == (verdict.outcome == 1.0), f"{one.intent}: {answer!r}"


def _without_meaning(evaluation: dict[str, Any]) -> dict[str, Any]:
    exact = {rule: text for rule, text in evaluation["reference_answers"].items() if rule != "fuzzy_match"}
    return {**evaluation, "reference_answers": exact}
