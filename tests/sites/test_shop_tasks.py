"""The shop's tasks: experts solve them, nothing and plausible wrong endings do not."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from sites.shop.tasks import TEMPLATES
from tests.sites.task_checks import (
    assert_nothing_passes,
    assert_only_detours_succeed,
    assert_plain_instructions,
    assert_short_pages_on_the_way,
    assert_solved_in_order,
    tasks_by_template,
)

NAMES = [template.name for template in TEMPLATES]
some_tasks = partial(tasks_by_template, ("shop",), seed=3, per_template=4)


@pytest.mark.parametrize("name", NAMES)
async def test_the_expert_solves_every_task_in_horizon_steps_and_passes_milestones_in_order(app, name):
    assert some_tasks()[name]
    await assert_solved_in_order(app, some_tasks()[name])


@pytest.mark.parametrize("name", NAMES)
async def test_doing_nothing_fails(app, name):
    await assert_nothing_passes(app, some_tasks()[name])


@pytest.mark.parametrize("name", NAMES)
async def test_early_stops_and_wrong_items_fail_and_detours_do_not(app, name):
    await assert_only_detours_succeed(app, some_tasks()[name][:2])


def test_horizons_and_splits_are_as_promised():
    horizons = [task.horizon for tasks in some_tasks().values() for task in tasks[:1]]
    assert len(TEMPLATES) >= 14
    assert min(horizons) == 2
    assert max(horizons) == 15
    assert sum(h >= 8 for h in horizons) * 3 >= len(horizons)
    assert Counter(t.split for t in TEMPLATES) == {"train": len(TEMPLATES) - 5, "validation": 2, "test": 3}


def test_instructions_are_short():
    for tasks in some_tasks().values():
        assert_plain_instructions(tasks, words=(4, 25))


async def test_pages_on_the_way_of_the_experts_are_short(app):
    for tasks in some_tasks().values():
        await assert_short_pages_on_the_way(app, tasks[0], lines=(10, 45), characters=900)
