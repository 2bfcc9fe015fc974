"""The map's tasks: experts solve them, nothing and plausible wrong endings do not."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache, partial

import pytest

from records.episodes import Task
from sites.map.tasks import TEMPLATES
from sites.tasks import generate, split_of
from tests.sites.task_checks import (
    assert_nothing_passes,
    assert_only_detours_succeed,
    assert_plain_instructions,
    assert_short_pages_on_the_way,
    assert_solved_in_order,
    tasks_by_template,
)

NAMES = [template.name for template in TEMPLATES]
some_tasks = partial(tasks_by_template, ("map",), seed=3, per_template=5)


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


def test_a_third_of_the_templates_need_more_than_ten_actions():
    horizons = [template.horizon for template in TEMPLATES]
    assert len(horizons) >= 30
    assert (min(horizons), max(horizons)) == (2, 22)
    assert 3 * sum(horizon > 10 for horizon in horizons) >= len(horizons)
    assert sum(horizon >= 16 for horizon in horizons) >= 4


def test_training_never_sees_three_validation_and_four_test_templates():
    assert Counter(t.split for t in TEMPLATES) == {"train": len(TEMPLATES) - 7, "validation": 3, "test": 4}


def test_every_training_template_has_tasks_in_each_split():
    for template in TEMPLATES:
        if template.split == "train":
            found = Counter(
                split_of(template, task.parameters)
                for task in tasks_of(template.name)
                if task.template == template.name
            )
            assert min(found["train"], found["validation"], found["test"]) >= 3, (template.name, found)


@lru_cache(maxsize=1)
def many_tasks() -> list[Task]:
    return generate(0, ("map",), per_template=100)


def tasks_of(name: str) -> list[Task]:
    return [task for task in many_tasks() if task.template == name]


def test_there_are_more_than_two_thousand_different_tasks():
    assert len({task.task_id for task in many_tasks()}) > 2_000
    assert len({(task.intent, task.template) for task in many_tasks()}) > 2_000


def test_some_questions_have_no_answer_and_look_like_others_that_have_one():
    without = {
        t.name for t in TEMPLATES if some_tasks()[t.name][0].evaluation["reference_answer_raw_annotation"] == "N/A"
    }
    assert without == {"map.unknown_fact", "map.no_place", "map.none_within", "map.no_route"}
    intents = Counter(template.intent for template in TEMPLATES)
    twins = {"map.unknown_fact", "map.none_within", "map.no_route"}
    assert all(intents[template.intent] > 1 for template in TEMPLATES if template.name in twins)
    assert all(some_tasks()[name][0].evaluation["string_note"] for name in without)


def test_instructions_are_short_and_do_not_hold_answers():
    for tasks in some_tasks().values():
        assert_plain_instructions(tasks, words=(3, 32))


async def test_pages_on_the_way_of_the_experts_are_short(app):
    for tasks in some_tasks().values():
        await assert_short_pages_on_the_way(app, tasks[0], lines=(9, 40), characters=1200)
