"""The code host's tasks: experts solve them, nothing and wrong endings do not."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from environments.browserless.environment import BrowserlessEnvironment
from sites.code.tasks import TEMPLATES
from sites.tasks import generate, task_set
from tests.sites.player import play
from tests.sites.task_checks import (
    assert_nothing_passes,
    assert_plain_instructions,
    assert_solved_in_order,
    assert_stopping_fails,
    assert_wrong_choices_fail,
    tasks_by_template,
)

NAMES = [template.name for template in TEMPLATES]
some_tasks = partial(tasks_by_template, ("code",), seed=7, per_template=5)
UNANSWERED = {"code.user_fact", "code.role_of", "code.milestone_end", "code.issue_due"}
"""Templates some of whose questions have no answer."""
WITHOUT_RIVALS = {"code.search"}


@pytest.mark.parametrize("name", NAMES)
async def test_the_expert_solves_every_task_in_horizon_steps_and_passes_milestones_in_order(app, name):
    assert len(some_tasks()[name]) == 5
    await assert_solved_in_order(app, some_tasks()[name])


@pytest.mark.parametrize("name", NAMES)
async def test_doing_nothing_fails(app, name):
    await assert_nothing_passes(app, some_tasks()[name])


@pytest.mark.parametrize("name", NAMES)
async def test_stopping_before_the_closing_step_fails(app, name):
    for task in some_tasks()[name][:2]:
        await assert_stopping_fails(app, task, after=task.horizon - 2)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_RIVALS])
async def test_every_wrong_choice_fails(app, name):
    """At each choice that the expert marks, what an inattentive person takes leads to a failure."""
    with_rivals = 0
    for task in some_tasks()[name]:
        with_rivals += await assert_wrong_choices_fail(app, task) > 0
        if with_rivals == 2:
            break
    assert with_rivals, "a task needs a natural way to do it wrong"


@pytest.mark.parametrize("name", sorted(UNANSWERED))
async def test_questions_without_an_answer_want_to_hear_just_that(app, name):
    """Whoever makes an answer up fails; who says N/A to a question that has one, too."""
    tasks = [task for task in generate(1, ("code",), per_template=40) if task.template == name]
    answers = [task.evaluation["reference_answers"] for task in tasks]
    without = next(t for t, a in zip(tasks, answers, strict=True) if a.get("fuzzy_match") == "N/A")
    answered = next(t for t, a in zip(tasks, answers, strict=True) if "fuzzy_match" not in a)
    assert without.evaluation["string_note"]
    env = BrowserlessEnvironment(app)
    for task, answer, outcome in (
        (without, "N/A", 1.0),
        (without, "2024-06-20", 0.0),
        (without, "Guest", 0.0),
        (answered, "N/A", 0.0),
    ):
        await env.reset(task)
        assert (await env.evaluate(answer)).outcome == outcome, task.intent
    await env.close()
    assert (await play(app, without)).outcome == 1.0


def test_only_those_templates_ask_what_nobody_can_answer():
    tasks = generate(1, ("code",), per_template=40)
    unanswered = {t.template for t in tasks if "fuzzy_match" in (t.evaluation["reference_answers"] or {})}
    assert unanswered == UNANSWERED


def test_starring_one_too_many_fails_and_so_does_marking_all_to_do_items_as_done(app):
    """What was not asked for is judged too."""
    star, todo = some_tasks()["code.star_top"][0], some_tasks()["code.finish_todos"][0]
    unwanted = [t["required_contents"]["exact_match"] for t in star.evaluation["program_html"]]
    assert "Star" in unwanted
    counts = [t["required_contents"]["exact_match"] for t in todo.evaluation["program_html"]]
    assert counts[0] == "Items: 0"
    assert counts[1] != "Items: 0"


def test_horizons_and_splits_are_as_promised():
    horizons = [task.horizon for task in generate(0, ("code",), per_template=1)]
    assert len(horizons) == len(TEMPLATES) >= 20
    assert min(horizons) == 2
    assert max(horizons) <= 30
    assert sum(h > 10 for h in horizons) * 3 >= len(horizons)
    assert sum(16 <= h <= 28 for h in horizons) >= 4
    assert Counter(t.split for t in TEMPLATES) == {"train": len(TEMPLATES) - 5, "validation": 2, "test": 3}


def test_there_are_thousands_of_different_tasks_in_every_kind_of_split():
    assert len({t.task_id for t in generate(0, ("code",), per_template=120)}) >= 2000
    assert len(task_set(0, ("code",), "train", 1500)) == 1500
    for split in ("validation", "test", "validation_templates", "test_templates"):
        assert len(task_set(0, ("code",), split, 300)) == 300


def test_instructions_are_short_and_do_not_hold_answers():
    for tasks in some_tasks().values():
        assert_plain_instructions(tasks, words=(3, 36))


async def test_pages_on_the_experts_ways_are_short_enough_for_a_small_model(app):
    firsts = [tasks[0] for tasks in some_tasks().values()]
    lengths = [len(page.text.splitlines()) for task in firsts for page in (await play(app, task)).pages]
    assert max(lengths) <= 38
    assert sum(lengths) / len(lengths) < 28
