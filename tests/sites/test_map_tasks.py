"""The map's tasks: experts solve them, nothing and plausible wrong endings do not."""

from __future__ import annotations

import random
from collections import Counter
from functools import lru_cache

import pytest

from judges.subgoals import validate_task
from replay.records import Task
from rollout_workers.browserless import BrowserlessEnvironment
from sites.app import create_app
from sites.demonstrations import Fault, Quality, demonstrate, planned_fault
from sites.experts import resolve
from sites.map.tasks import TEMPLATES
from sites.tasks import generate, split_of
from tests.sites.player import expert, play

NAMES = [template.name for template in TEMPLATES]


@pytest.fixture(scope="module")
def app():
    return create_app(0)


@lru_cache(maxsize=1)
def some_tasks() -> dict[str, list[Task]]:
    tasks: dict[str, list[Task]] = {name: [] for name in NAMES}
    for task in generate(3, ("map",), per_template=5):
        tasks[task.template].append(task)
    return tasks


@pytest.mark.parametrize("name", NAMES)
async def test_the_expert_solves_every_task_in_horizon_steps_and_passes_milestones_in_order(app, name):
    assert len(some_tasks()[name]) == 5
    for task in some_tasks()[name]:
        validate_task(task)
        played = await play(app, task)
        assert played.outcome == 1.0, task.intent
        assert len(played.actions) == task.horizon
        assert not any(played.notices), played.notices
        for vector in played.milestones:
            assert list(vector) == sorted(vector, reverse=True), f"{task.intent}: {vector}"
        assert played.milestones[-1] == (True,) * 4
        assert played.milestones[-2][3] is False


@pytest.mark.parametrize("name", NAMES)
async def test_doing_nothing_fails(app, name):
    env = BrowserlessEnvironment(app)
    for task in some_tasks()[name]:
        for answer in (None, "done", ""):
            await env.reset(task)
            assert (await env.evaluate(answer)).outcome == 0.0, task.intent
    await env.close()


@pytest.mark.parametrize("name", NAMES)
async def test_early_stops_and_wrong_items_fail_and_detours_do_not(app, name):
    always = Quality(faulty=1.0, detours=0.2, habitual=0.0)
    seen: Counter[Fault] = Counter()
    for task in some_tasks()[name]:
        for seed in range(6):
            fault = fault_of(task, seed, always)
            played = await play(app, task, demonstrate(task, seed, always))
            seen[fault] += 1
            assert len(played.actions) <= task.max_steps
            assert played.outcome == (fault is Fault.DETOUR), f"{task.intent} {fault}: {played.actions}"
    assert seen[Fault.WRONG_ITEM]
    assert seen[Fault.DETOUR]


def fault_of(task: Task, seed: int, quality: Quality) -> Fault:
    plan = planned_fault(task, random.Random(f"demonstration/{seed}/{task.task_id}"), quality)
    assert plan is not None
    return plan.fault


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
        for task in tasks:
            assert 3 <= len(task.intent.split()) <= 32, task.intent
            for answer in (task.evaluation["reference_answers"] or {}).values():
                assert answer not in task.parameters.values(), task.intent


async def test_pages_on_the_way_of_the_experts_are_short(app):
    for tasks in some_tasks().values():
        env, actor = BrowserlessEnvironment(app), expert(tasks[0])
        seen, intent = await env.reset(tasks[0]), next(actor)
        while intent.kind != "exit":
            assert 9 <= len(seen.text.splitlines()) <= 40, seen.text
            assert len(seen.text) <= 1200, seen.text
            seen = await env.step(resolve(intent, seen))
            intent = actor.send(seen)
        await env.close()
