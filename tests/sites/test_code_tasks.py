"""The code host's tasks: experts solve them, nothing and wrong endings do not."""

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
from sites.code.tasks import TEMPLATES
from sites.experts import Intent
from sites.tasks import generate, task_set
from tests.sites.player import play

NAMES = [template.name for template in TEMPLATES]
UNANSWERED = {"code.user_fact", "code.role_of", "code.milestone_end", "code.issue_due"}
"""Templates some of whose questions have no answer."""
WITHOUT_RIVALS = {"code.search"}


@pytest.fixture(scope="module")
def app():
    return create_app(0)


@lru_cache(maxsize=1)
def some_tasks() -> dict[str, list[Task]]:
    tasks: dict[str, list[Task]] = {name: [] for name in NAMES}
    for task in generate(7, ("code",), per_template=5):
        tasks[task.template].append(task)
    return tasks


@pytest.mark.parametrize("name", NAMES)
async def test_the_expert_solves_every_task_in_horizon_steps(app, name):
    assert len(some_tasks()[name]) == 5
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
    env = BrowserlessEnvironment(app)
    for task in some_tasks()[name]:
        for answer in (None, "done", ""):
            await env.reset(task)
            assert (await env.evaluate(answer)).outcome == 0.0
    await env.close()


@pytest.mark.parametrize("name", NAMES)
async def test_stopping_before_the_closing_step_fails(app, name):
    for task in some_tasks()[name][:2]:
        last = task.horizon - 2
        steps = Counter()

        def stop_early(intent: Intent, seen: Observation, last: int = last, steps: Counter[str] = steps) -> Intent:
            steps["done"] += 1
            return Intent("exit", argument="done") if steps["done"] > last else intent

        assert (await play(app, task, change=stop_early)).outcome == 0.0, task.intent


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_RIVALS])
async def test_every_wrong_choice_fails(app, name):
    """At each choice that the expert marks, what an inattentive person takes leads to a failure."""
    wrong = Counter()
    for task in some_tasks()[name]:
        if len(wrong) == 2:
            break
        for choice in range(12):
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
                wrong[task.task_id] += 1
                assert played.outcome == 0.0, f"{task.intent}: choice {choice}"
            if passed["choices"] <= choice:
                break
    assert wrong, "a task needs a natural way to do it wrong"


def other(intent: Intent, seen: Observation) -> Intent | None:
    """The first rival of what the expert takes, None where the page has none."""
    if intent.kind == "exit":
        found = [text for text in re.findall(intent.rivals, seen.page_text) if text != intent.argument]
        return replace(intent, argument=found[0]) if found else None
    if intent.kind == "select":
        options = seen.find(intent.name, intent.role).options
        found = [o for o in options if re.fullmatch(intent.rivals, o) and o != intent.argument]
        return replace(intent, argument=found[0]) if found else None
    names = [e.name for e in seen.elements if e.role == intent.role and re.fullmatch(intent.rivals, e.name)]
    names = [name for name in names if name != intent.name]
    return replace(intent, name=names[-1], nth=0) if names else None


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
        for task in tasks:
            assert 3 <= len(task.intent.split()) <= 36, task.intent
            reference = task.evaluation["reference_answers"]
            assert reference is None or reference["exact_match"] not in task.parameters.values()


async def test_pages_on_the_experts_ways_are_short_enough_for_a_small_model(app):
    lengths = []
    env = BrowserlessEnvironment(app)
    for tasks in some_tasks().values():
        seen = await env.reset(tasks[0])
        lengths.append(len(seen.text.splitlines()))

        def keep(intent: Intent, seen: Observation) -> Intent:
            lengths.append(len(seen.text.splitlines()))
            return intent

        await play(app, tasks[0], change=keep)
    await env.close()
    assert max(lengths) <= 38
    assert sum(lengths) / len(lengths) < 28
