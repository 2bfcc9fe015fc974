"""For every template of every site and collection: what solves another of its tasks does not solve this one.

The order is placed, but for another product; the thread is answered, but in another forum; the question is answered,
but about another person: nothing is as plausible as the right thing done to the wrong one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest

from environments.browserless.environment import BrowserlessEnvironment
from environments.environment import Environment
from records.environment import Observation
from records.episodes import Task
from sites.collections import COLLECTIONS
from sites.experts import Intent
from sites.registry import SITES
from sites.tasks import all_templates, expert_of, needs_browser
from tests.sites.player import play_in
from tests.sites.task_checks import tasks_by_template

EVERYTHING = (*SITES, *COLLECTIONS)
PLAIN = [template.name for template in all_templates(EVERYTHING) if not template.scripted]
SCRIPTED = [template.name for template in all_templates(EVERYTHING) if template.scripted]
NOT_SAID = "N/A"


def some_tasks(name: str) -> list[Task]:
    return tasks_by_template(EVERYTHING, seed=13, per_template=6)[name]


def others(task: Task) -> list[Task]:
    """Tasks of the same template that something else solves; none where nothing can be answered."""
    return [other for other in some_tasks(task.template) if other.evaluation != task.evaluation]


@lru_cache(maxsize=1)
def questions() -> list[Task]:
    """Every task that is judged by its answer alone."""
    found = [task for name in (*PLAIN, *SCRIPTED) for task in some_tasks(name)]
    return [task for task in found if task.evaluation["eval_types"] == ["string_match"] and not needs_browser(task)]


async def assert_wrong_ending_fails(env: Environment, task: Task) -> None:
    """Who does what another task asks for, or makes an answer up where there is none, fails."""
    wanted = others(task)
    assert wanted or task.evaluation["reference_answer_raw_annotation"] == NOT_SAID, task.template

    def make_up(intent: Intent, seen: Observation) -> Intent:
        return intent if wanted or intent.kind != "exit" else replace(intent, argument="17")

    played = await play_in(env, task, expert_of(wanted[0] if wanted else task), make_up)
    assert played.outcome == 0.0, f"{task.intent}\n{played.actions}"


@pytest.mark.parametrize("name", PLAIN)
async def test_what_solves_another_task_of_the_template_fails(app, name):
    env = BrowserlessEnvironment(app)
    await assert_wrong_ending_fails(env, some_tasks(name)[0])
    await env.close()


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
async def test_in_chromium_neither_that_nor_doing_nothing_solves_a_task_on_pages_with_scripts(env):
    for name in SCRIPTED:
        task = some_tasks(name)[0]
        await assert_wrong_ending_fails(env, task)
        await env.reset(task)
        assert (await env.evaluate("done")).outcome == 0.0, task.intent


async def test_a_question_is_settled_by_its_answer_and_not_available_is_one(app):
    env, unanswerable, answerable = BrowserlessEnvironment(app), set[str](), set[str]()
    for task in questions():
        right = task.evaluation["reference_answer_raw_annotation"]
        (unanswerable if right == NOT_SAID else answerable).add(task.template)
        wrong = "blue" if right == NOT_SAID else NOT_SAID
        for answer, outcome in ((right, 1.0), (wrong, 0.0), ("", 0.0), (None, 0.0)):
            await env.reset(task)
            assert (await env.evaluate(answer)).outcome == outcome, f"{task.intent}: {answer!r}"
    await env.close()
    assert {name.split(".")[0] for name in answerable} == set(SITES)
    # The shop's is on a page with scripts; the forum's questions are all about what its pages show.
    assert {name.split(".")[0] for name in unanswerable} == set(SITES) - {"shop", "forum"}
    assert any(some_tasks(name)[0].evaluation["reference_answer_raw_annotation"] == NOT_SAID for name in SCRIPTED)
