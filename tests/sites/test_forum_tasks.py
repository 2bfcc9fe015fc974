"""The forum's tasks: experts solve them, nothing and wrong endings do not."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import lru_cache

import pytest

from judges.subgoals import validate_task
from replay.records import Task
from rollout_workers.browserless import BrowserlessEnvironment
from rollout_workers.environment import Observation
from sites.app import create_app
from sites.experts import Intent
from sites.forum.tasks import TEMPLATES
from sites.tasks import generate
from tests.sites.player import play

NAMES = [template.name for template in TEMPLATES]


@pytest.fixture(scope="module")
def app():
    return create_app(0)


@lru_cache(maxsize=1)
def some_tasks() -> dict[str, list[Task]]:
    tasks: dict[str, list[Task]] = {name: [] for name in NAMES}
    for task in generate(7, ("forum",), per_template=3):
        tasks[task.template].append(task)
    return tasks


@pytest.mark.parametrize("name", NAMES)
async def test_the_expert_solves_every_task_in_horizon_steps(app, name):
    assert some_tasks()[name]
    for task in some_tasks()[name]:
        validate_task(task)
        played = await play(app, task)
        assert played.outcome == 1.0, task.intent
        assert len(played.actions) == task.horizon
        assert not any(played.notices), played.notices


@pytest.mark.parametrize("name", NAMES)
async def test_milestones_are_reached_in_order_and_the_last_one_at_the_end(app, name):
    for task in some_tasks()[name]:
        played = await play(app, task)
        for vector in played.milestones:
            assert list(vector) == sorted(vector, reverse=True), f"{task.intent}: {vector}"
        assert played.milestones[-1] == (True,) * 4
        assert played.milestones[-2][3] is False


@pytest.mark.parametrize("name", NAMES)
async def test_doing_nothing_fails(app, name):
    task = some_tasks()[name][0]
    env = BrowserlessEnvironment(app)
    for answer in (None, "done", ""):
        await env.reset(task)
        assert (await env.evaluate(answer)).outcome == 0.0
    await env.close()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "forum.count_comments"])
async def test_stopping_before_the_closing_step_fails(app, name):
    task = some_tasks()[name][0]
    last = task.horizon - 2
    steps = Counter()

    def stop_early(intent: Intent, seen: Observation) -> Intent:
        steps["done"] += 1
        return Intent("exit", argument="done") if steps["done"] > last else intent

    assert (await play(app, task, change=stop_early)).outcome == 0.0


@pytest.mark.parametrize("name", [name for name in NAMES if name != "forum.search"])
async def test_every_wrong_choice_fails(app, name):
    """At each choice that the expert marks, what an inattentive person takes leads to a failure."""
    wrong = 0
    for task in some_tasks()[name]:
        for choice in range(7):
            passed = Counter()

            def take_rival(
                intent: Intent, seen: Observation, choice: int = choice, passed: Counter[str] = passed
            ) -> Intent:
                if intent.rivals is None or passed["done"]:
                    return intent
                passed["choices"] += 1
                rival = other(intent, seen)
                if passed["choices"] - 1 != choice or rival is None:
                    return intent
                passed["done"] = 1
                return rival

            played = await play(app, task, change=take_rival)
            if passed["done"]:
                wrong += 1
                assert played.outcome == 0.0, f"{task.intent}: choice {choice}"
    assert wrong or name == "forum.change_bio", "a task needs a natural way to do it wrong"


def other(intent: Intent, seen: Observation) -> Intent | None:
    """The first rival of what the expert takes, None where the page has none."""
    if intent.kind == "exit":
        found = [text for text in re.findall(intent.rivals, seen.page_text) if text != intent.argument]
        return replace(intent, argument=found[0]) if found else None
    if intent.kind == "select":
        options = seen.find(intent.name, intent.role).options
        found = [o for o in options if re.fullmatch(intent.rivals, o) and o not in (intent.argument, "all")]
        return replace(intent, argument=found[0]) if found else None
    names = [e.name for e in seen.elements if e.role == intent.role and re.fullmatch(intent.rivals, e.name)]
    names = [name for name in names if name != intent.name]
    return replace(intent, name=names[-1], nth=0) if names else None


def test_horizons_and_splits_are_as_promised():
    horizons = [t.horizon for t in TEMPLATES]
    assert len(TEMPLATES) >= 14
    assert min(horizons) == 2
    assert max(horizons) == 15
    assert sum(h >= 8 for h in horizons) * 3 >= len(horizons)
    assert Counter(t.split for t in TEMPLATES) == {"train": len(TEMPLATES) - 5, "validation": 2, "test": 3}


def test_instructions_are_short_and_do_not_hold_answers():
    for tasks in some_tasks().values():
        for task in tasks:
            assert 3 <= len(task.intent.split()) <= 30, task.intent
            reference = task.evaluation["reference_answers"]
            assert reference is None or reference["exact_match"] not in task.parameters.values()
