"""Tasks over several sites: experts solve them without a browser, half of the work does not."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from environments.browserless.environment import BrowserlessEnvironment
from records.episodes import Task
from sites.across.tasks import TEMPLATES
from sites.demonstrations import demonstrate
from sites.quality import Quality
from sites.registry import SITES
from tests.sites.player import play
from tests.sites.task_checks import assert_solved_in_order, assert_stopping_fails, tasks_by_template

NAMES = [template.name for template in TEMPLATES if set(template.sites) <= set(SITES)]


def some_tasks() -> dict[str, list[Task]]:
    tasks = tasks_by_template((*SITES, "across"), seed=3, per_template=3)
    return {name: tasks[name] for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
async def test_the_expert_solves_every_task_in_horizon_steps_and_passes_milestones_in_order(app, name):
    assert some_tasks()[name]
    await assert_solved_in_order(app, some_tasks()[name])


@pytest.mark.parametrize("name", NAMES)
async def test_stopping_anywhere_before_the_last_action_fails(app, name):
    task = some_tasks()[name][0]
    for last in (0, task.horizon // 2, task.horizon - 2):
        await assert_stopping_fails(app, task, after=last)


async def test_the_bar_of_other_sites_is_the_first_thing_on_every_page(app):
    env, task = BrowserlessEnvironment(app), some_tasks()["across.post_price"][0]
    seen = await env.reset(task)
    assert [(e.role, e.name) for e in seen.elements[:1]] == [("link", "forum")]
    assert seen.text.splitlines()[1:3] == ["Other sites:", "link forum 0"]
    await env.close()


async def test_imperfect_demonstrations_end_within_max_steps_and_mostly_fail(app):
    always, outcomes = Quality(faulty=1.0, detours=0.0, habitual=0.0), Counter[float]()
    for tasks in some_tasks().values():
        for seed in range(3):
            played = await play(app, tasks[0], demonstrate(tasks[0], seed, always))
            outcomes[played.outcome] += 1
            assert len(played.actions) <= tasks[0].max_steps
    assert outcomes[0.0] >= 0.9 * outcomes.total()


def test_there_are_tasks_of_six_to_twenty_steps_over_two_sites_and_more():
    horizons = [tasks[0].horizon for tasks in some_tasks().values()]
    assert len(NAMES) >= 8
    assert min(horizons) >= 6
    assert max(horizons) >= 19
    assert 3 * sum(horizon > 10 for horizon in horizons) >= len(horizons)
    for tasks in some_tasks().values():
        assert len(tasks[0].sites) >= 2
        assert tasks[0].start_url == f"__{tasks[0].site.upper()}__/"


def test_every_split_of_templates_has_tasks_over_several_sites():
    assert {template.split for template in TEMPLATES} == {"train", "validation", "test"}


def test_no_answer_is_among_a_tasks_parameters():
    for tasks in some_tasks().values():
        for task in tasks:
            wanted = json.dumps([target["required_contents"] for target in task.evaluation["program_html"]])
            told = {str(value) for value in task.parameters.values()}
            assert not set(re.findall(r'"(\$\d+|\d+)"', wanted)) & told, task.intent
