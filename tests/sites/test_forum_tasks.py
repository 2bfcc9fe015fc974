"""The forum's tasks: experts solve them, nothing and wrong endings do not."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from sites.forum.tasks import TEMPLATES
from tests.sites.task_checks import (
    assert_nothing_passes,
    assert_plain_instructions,
    assert_solved_in_order,
    assert_stopping_fails,
    assert_wrong_choices_fail,
    tasks_by_template,
)

NAMES = [template.name for template in TEMPLATES]
some_tasks = partial(tasks_by_template, ("forum",), seed=7, per_template=3)


@pytest.mark.parametrize("name", NAMES)
async def test_the_expert_solves_every_task_in_horizon_steps_and_passes_milestones_in_order(app, name):
    assert some_tasks()[name]
    await assert_solved_in_order(app, some_tasks()[name])


@pytest.mark.parametrize("name", NAMES)
async def test_doing_nothing_fails(app, name):
    await assert_nothing_passes(app, some_tasks()[name][:1])


@pytest.mark.parametrize("name", [name for name in NAMES if name != "forum.count_comments"])
async def test_stopping_before_the_closing_step_fails(app, name):
    task = some_tasks()[name][0]
    await assert_stopping_fails(app, task, after=task.horizon - 2)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "forum.search"])
async def test_every_wrong_choice_fails(app, name):
    """At each choice that the expert marks, what an inattentive person takes leads to a failure."""
    wrong = [await assert_wrong_choices_fail(app, task) for task in some_tasks()[name]]
    assert any(wrong) or name == "forum.change_bio", "a task needs a natural way to do it wrong"


def test_horizons_and_splits_are_as_promised():
    horizons = [t.horizon for t in TEMPLATES]
    assert len(TEMPLATES) >= 14
    assert min(horizons) == 2
    assert max(horizons) == 15
    assert sum(h >= 8 for h in horizons) * 3 >= len(horizons)
    assert Counter(t.split for t in TEMPLATES) == {"train": len(TEMPLATES) - 5, "validation": 2, "test": 3}


def test_instructions_are_short_and_do_not_hold_answers():
    for tasks in some_tasks().values():
        assert_plain_instructions(tasks, words=(3, 30))
