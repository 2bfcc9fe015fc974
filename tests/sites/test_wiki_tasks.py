"""The encyclopedia's tasks: experts solve them, nothing and plausible wrong endings do not."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache, partial

import pytest

from records.episodes import Task
from sites.tasks import generate, split_of
from sites.wiki.tasks import TEMPLATES
from tests.sites.task_checks import (
    assert_nothing_passes,
    assert_only_detours_succeed,
    assert_plain_instructions,
    assert_short_pages_on_the_way,
    assert_solved_in_order,
    tasks_by_template,
)

NAMES = [template.name for template in TEMPLATES]
some_tasks = partial(tasks_by_template, ("wiki",), seed=3, per_template=5)


@pytest.mark.parametrize("name", NAMES)
async def test_the_expert_solves_every_task_in_horizon_steps_and_passes_milestones_in_order(app, name):
    assert len(some_tasks()[name]) == 5
    await assert_solved_in_order(app, some_tasks()[name])


@pytest.mark.parametrize("name", NAMES)
async def test_doing_nothing_fails(app, name):
    await assert_nothing_passes(app, some_tasks()[name])


@pytest.mark.parametrize("name", NAMES)
async def test_early_stops_and_wrong_items_fail_and_detours_do_not(app, name):
    await assert_only_detours_succeed(app, some_tasks()[name][:2])


def test_horizons_run_from_two_to_nine_or_a_little_more():
    horizons = {task.horizon for task in many_tasks()}
    assert min(horizons) == 2
    assert {2, 3, 4, 5, 6, 7, 9} <= horizons
    assert max(horizons) <= 11


def test_training_never_sees_one_validation_and_two_test_templates():
    assert Counter(t.split for t in TEMPLATES) == {"train": len(TEMPLATES) - 3, "validation": 1, "test": 2}


@lru_cache(maxsize=1)
def many_tasks() -> list[Task]:
    return generate(0, ("wiki",), per_template=200)


def test_every_training_template_has_tasks_in_each_split():
    for template in TEMPLATES:
        if template.split == "train":
            found = Counter(split_of(template, t.parameters) for t in many_tasks() if t.template == template.name)
            assert min(found["train"], found["validation"], found["test"]) >= 3, (template.name, found)


def test_a_question_without_an_answer_reads_like_one_that_has_one():
    intents = {template.name: template.intent for template in TEMPLATES}
    assert intents["wiki.fact"] == intents["wiki.missing_fact"]
    for task in some_tasks()["wiki.missing_fact"]:
        assert task.evaluation["reference_answers"]["fuzzy_match"] == "N/A"
        assert task.evaluation["string_note"]


def test_instructions_are_short_and_do_not_hold_answers():
    for tasks in some_tasks().values():
        assert_plain_instructions(tasks, words=(4, 20))


async def test_pages_on_the_way_of_the_experts_are_short(app):
    for tasks in some_tasks().values():
        await assert_short_pages_on_the_way(app, tasks[0], lines=(9, 35), characters=900)
