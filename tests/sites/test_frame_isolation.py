"""Sixteen episodes at once that change things give what they give one by one: nobody sees another's state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from environments.browser.environment import BrowserEnvironment
from environments.browserless.environment import BrowserlessEnvironment
from environments.embedded.world import EmbeddedWorld
from environments.environment import Environment
from records.episodes import Task
from sites.app import create_app
from sites.registry import SITES
from sites.tasks import needs_browser, task_set
from tests.sites.player import Played, play_in

AT_ONCE = 16


def changing_tasks(names: tuple[str, ...], count: int) -> list[Task]:
    """Tasks that are judged by what pages say afterwards, hence change something, of many templates."""
    found = [task for task in task_set(9, names, "train", 200) if task.evaluation["eval_types"] == ["program_html"]]
    return [task for task in found if not needs_browser(task)][:count]


def tasks_over_several_sites(count: int) -> list[Task]:
    return [task for task in changing_tasks((*SITES, "across"), 200) if len(task.sites) > 1][:count]


async def both_ways(make: Callable[[], Environment], tasks: list[Task]) -> tuple[list[Played], list[Played]]:
    """Play all tasks at once, and then each of them alone in a single environment."""
    assert len(tasks) == AT_ONCE
    environments = [make() for _ in tasks]
    try:
        at_once = await asyncio.gather(*(play_in(env, task) for env, task in zip(environments, tasks, strict=True)))
        alone: dict[str, Played] = {}
        for task in tasks:
            if task.task_id not in alone:
                alone[task.task_id] = await play_in(environments[0], task)
    finally:
        for env in environments:
            await env.close()
    return at_once, [alone[task.task_id] for task in tasks]


def came_to(played: list[Played]) -> list[tuple[float, object]]:
    return [(one.outcome, one.shown) for one in played]


@pytest.mark.parametrize("site", SITES)
async def test_sixteen_episodes_on_a_site_do_not_see_each_other(site):
    app, tasks = create_app(0), changing_tasks((site,), AT_ONCE // 2)
    # Every task twice: two episodes that change the very same thing are the hardest to keep apart.
    at_once, alone = await both_ways(lambda: BrowserlessEnvironment(app), [*tasks, *tasks])
    assert {played.outcome for played in at_once} == {1.0}
    assert came_to(at_once) == came_to(alone)
    assert len(app.state.sessions) == 1, "all sessions but the public one are dropped"


async def test_sixteen_episodes_over_several_sites_do_not_see_each_other():
    app = create_app(0)
    tasks = tasks_over_several_sites(AT_ONCE // 2)
    at_once, alone = await both_ways(lambda: BrowserlessEnvironment(app), [*tasks, *tasks])
    assert {played.outcome for played in at_once} == {1.0}
    assert came_to(at_once) == came_to(alone)
    assert len(app.state.sessions) == 1, "all sessions but the public one are dropped"


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_sixteen_episodes_in_one_chromium_do_not_see_each_other(browser, sites):
    tasks = [*(changing_tasks((site,), 1)[0] for site in SITES), *tasks_over_several_sites(AT_ONCE // 2 - len(SITES))]
    at_once, alone = await both_ways(lambda: BrowserEnvironment(browser, EmbeddedWorld(sites)), [*tasks, *tasks])
    assert {played.outcome for played in at_once} == {1.0}
    assert came_to(at_once) == came_to(alone)
