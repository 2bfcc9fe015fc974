"""Errands, tasks of many parts on one site: experts solve them, nothing, half of it and wrong choices do not."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

import pytest

from records.episodes import Task
from sites.collections import COLLECTIONS
from sites.registry import SITES
from sites.tasks import LONGEST_HORIZON, generate
from tests.sites.task_checks import (
    assert_nothing_passes,
    assert_only_detours_succeed,
    assert_plain_instructions,
    assert_solved_in_order,
    assert_stopping_fails,
    assert_wrong_choices_fail,
    tasks_by_template,
)

NAMES = [template.name for template in COLLECTIONS["errands"]]


def some_tasks() -> dict[str, list[Task]]:
    tasks = tasks_by_template(("shop", "forum", "errands"), seed=5, per_template=3)
    return {name: tasks[name] for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
async def test_the_expert_solves_every_errand_in_horizon_steps_and_passes_milestones_in_order(app, name):
    assert some_tasks()[name]
    await assert_solved_in_order(app, some_tasks()[name])


@pytest.mark.parametrize("name", NAMES)
async def test_doing_nothing_fails(app, name):
    await assert_nothing_passes(app, some_tasks()[name])


@pytest.mark.parametrize("name", NAMES)
async def test_stopping_before_the_last_action_fails(app, name):
    task = some_tasks()[name][0]
    for after in (task.horizon // 3, 2 * task.horizon // 3, task.horizon - 2):
        await assert_stopping_fails(app, task, after)


@pytest.mark.parametrize("name", NAMES)
async def test_a_rival_at_any_choice_fails(app, name):
    assert await assert_wrong_choices_fail(app, some_tasks()[name][0]), "a task needs a natural way to do it wrong"


@pytest.mark.parametrize("name", NAMES)
async def test_of_faulty_demonstrations_only_detours_succeed(app, name):
    await assert_only_detours_succeed(app, some_tasks()[name][:2])


def test_errands_have_eleven_to_thirty_steps_and_templates_of_every_split():
    for tasks in some_tasks().values():
        assert all(10 < task.horizon <= LONGEST_HORIZON for task in tasks)
    for site in ("shop", "forum"):
        assert {t.split for t in COLLECTIONS["errands"] if t.sites[0] == site} == {"train", "validation", "test"}


def test_instructions_are_of_a_length_that_people_write():
    for tasks in some_tasks().values():
        assert_plain_instructions(tasks, words=(8, 45))


def test_at_least_a_third_of_all_templates_need_more_than_ten_steps():
    horizons: dict[str, list[int]] = defaultdict(list)
    for task in generate(0, (*SITES, *COLLECTIONS), per_template=10):
        horizons[task.template].append(task.horizon)
    long = {name for name, found in horizons.items() if median(found) > 10}
    assert 3 * len(long) >= len(horizons)
    for site in set(SITES) - {"wiki"}:  # the encyclopedia is there for tasks that span two sites
        own = {name for name in horizons if name.startswith(f"{site}.")}
        assert 3 * len(long & own) >= len(own), site
