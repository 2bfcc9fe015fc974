"""Collections in a real Chromium: experts solve every template, and of sixteen episodes none sees another's changes."""

from __future__ import annotations

import asyncio

import pytest

from environments.browser.environment import BrowserEnvironment
from environments.browserless.environment import BrowserlessEnvironment
from environments.embedded.world import EmbeddedWorld
from records.episodes import Task
from sites.collections import COLLECTIONS
from sites.registry import SITES
from sites.tasks import generate, task_set
from tests.sites.player import play_in

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

AT_ONCE = 16
PLAIN = [name for name, templates in COLLECTIONS.items() if not any(template.scripted for template in templates)]
"""Collections that can be played without a browser as well; ``test_hardness`` plays the others."""


def tasks_of(collection: str, seed: int) -> list[Task]:
    """One task of every template of the collection."""
    members = {template.name for template in COLLECTIONS[collection]}
    found = [task for task in generate(seed, (*SITES, collection), per_template=1) if task.template in members]
    assert len(found) == len(members)
    return found


def one_that_changes(name: str) -> Task:
    """A task of this site or collection that is judged by what pages say afterwards."""
    names = (*SITES, name) if name in COLLECTIONS else (name,)
    members = {t.name for t in (COLLECTIONS[name] if name in COLLECTIONS else SITES[name].templates)}
    found = [task for task in task_set(9, names, "train", 200) if task.template in members]
    return next(task for task in found if task.evaluation["eval_types"] == ["program_html"])


@pytest.mark.parametrize("collection", PLAIN)
async def test_experts_solve_every_template_and_see_what_they_see_without_a_browser(env, app, collection):
    twin = BrowserlessEnvironment(app)
    for task in tasks_of(collection, seed=5):
        played, twins = await play_in(env, task), await play_in(twin, task)
        assert played.outcome == 1.0, f"{task.intent}\n{played.shown[-1]}"
        assert len(played.pages) == task.horizon
        assert (played.outcome, played.shown) == (twins.outcome, twins.shown)
    await twin.close()


async def test_sixteen_episodes_on_all_sites_and_collections_give_what_they_give_one_by_one(browser, sites):
    names = (*SITES, *(name for name in COLLECTIONS if name != "errands"))
    tasks = [one_that_changes(name) for name in names]
    assert 2 * len(tasks) == AT_ONCE, "every task twice: two that change the very same thing are hardest to keep apart"
    environments = [BrowserEnvironment(browser, EmbeddedWorld(sites)) for _ in range(AT_ONCE)]
    try:
        pairs = zip(environments, [*tasks, *tasks], strict=True)
        at_once = await asyncio.gather(*(play_in(env, task) for env, task in pairs))
        alone = [await play_in(environments[0], task) for task in tasks]
    finally:
        for env in environments:
            await env.close()
    for task, played, other in zip([*tasks, *tasks], at_once, [*alone, *alone], strict=True):
        assert played.outcome == 1.0, task.intent
        assert (played.outcome, played.shown) == (other.outcome, other.shown), task.intent
