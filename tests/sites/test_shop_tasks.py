"""The shop's tasks: experts solve them, nothing and plausible wrong endings do not."""

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
from sites.shop.tasks import TEMPLATES
from sites.tasks import generate
from tests.sites.player import expert, play

NAMES = [template.name for template in TEMPLATES]


@pytest.fixture(scope="module")
def app():
    return create_app(0)


@lru_cache(maxsize=1)
def some_tasks() -> dict[str, list[Task]]:
    tasks: dict[str, list[Task]] = {name: [] for name in NAMES}
    for task in generate(3, ("shop",), per_template=4):
        tasks[task.template].append(task)
    return tasks


@pytest.mark.parametrize("name", NAMES)
async def test_the_expert_solves_every_task_in_horizon_steps_and_passes_milestones_in_order(app, name):
    assert some_tasks()[name]
    for task in some_tasks()[name]:
        validate_task(task)
        played = await play(app, task, expert(task))
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
        for answer in (None, "done"):
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


def test_horizons_and_splits_are_as_promised():
    horizons = [task.horizon for tasks in some_tasks().values() for task in tasks[:1]]
    assert len(TEMPLATES) >= 14
    assert min(horizons) == 2
    assert max(horizons) == 15
    assert sum(h >= 8 for h in horizons) * 3 >= len(horizons)
    assert Counter(t.split for t in TEMPLATES) == {"train": len(TEMPLATES) - 5, "validation": 2, "test": 3}


def test_instructions_are_short():
    for tasks in some_tasks().values():
        for task in tasks:
            assert 4 <= len(task.intent.split()) <= 25, task.intent


async def test_pages_on_the_way_of_the_experts_are_short(app):
    for tasks in some_tasks().values():
        env, actor = BrowserlessEnvironment(app), expert(tasks[0])
        seen, intent = await env.reset(tasks[0]), next(actor)
        while intent.kind != "exit":
            assert 10 <= len(seen.text.splitlines()) <= 45, seen.text
            assert len(seen.text) <= 900, seen.text
            seen = await env.step(resolve(intent, seen))
            intent = actor.send(seen)
        await env.close()
