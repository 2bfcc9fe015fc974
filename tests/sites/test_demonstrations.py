"""Demonstrations of all sites: as often and as wrong as they are asked to be, and repeatable."""

from __future__ import annotations

from collections import Counter

import pytest

from replay.records import Task
from rollout_workers.browserless import BrowserlessEnvironment
from sites.app import create_app
from sites.demonstrations import Quality, demonstrate
from sites.experts import resolve
from sites.registry import SITES
from sites.tasks import all_templates, generate


@pytest.fixture(scope="module")
def app():
    return create_app(0)


def tasks(count: int = 1) -> list[Task]:
    return generate(11, tuple(SITES), per_template=count)


async def play(app, task: Task, seed: int, quality: Quality) -> tuple[float, list[str]]:
    env, actor = BrowserlessEnvironment(app), demonstrate(task, seed, quality)
    seen, intent, actions = await env.reset(task), next(actor), []
    while intent.kind != "exit":
        actions.append(f"{intent.kind} {intent.name} {intent.argument}")
        seen = await env.step(resolve(intent, seen))
        intent = actor.send(seen)
    verdict = await env.evaluate(intent.argument)
    await env.close()
    return verdict.outcome, [*actions, f"exit {intent.argument}"]


async def test_flawless_demonstrations_succeed(app):
    for task in tasks():
        outcome, actions = await play(app, task, 0, Quality(faulty=0.0))
        assert (outcome, len(actions)) == (1.0, task.horizon), task.intent


async def test_faulty_demonstrations_of_every_template_end_within_max_steps(app):
    outcomes: Counter[float] = Counter()
    for task in tasks():
        for seed in range(5):
            outcome, actions = await play(app, task, seed, Quality(faulty=1.0, detours=0.0, habitual=0.0))
            outcomes[outcome] += 1
            assert len(actions) <= task.max_steps, actions
    assert outcomes[0.0] >= 0.95 * outcomes.total()


async def test_detours_succeed_in_at_most_two_steps_more(app):
    for task in tasks():
        for seed in range(3):
            outcome, actions = await play(app, task, seed, Quality(faulty=1.0, detours=1.0))
            assert outcome == 1.0, f"{task.intent}: {actions}"
            assert len(actions) <= task.horizon + 2


async def test_the_same_seed_gives_the_same_demonstration(app):
    quality = Quality(faulty=1.0)
    for task in tasks()[::5]:
        first, second, other = [await play(app, task, seed, quality) for seed in (4, 4, 5)]
        assert first == second
    everything = [[(await play(app, task, seed, quality))[1] for task in tasks()[::5]] for seed in (4, 5)]
    assert everything[0] != everything[1]


def test_rates_differ_between_templates_stay_in_range_and_depend_on_the_seed():
    names = [template.name for template in all_templates(tuple(SITES))]
    rates = [Quality(low=0.2, high=0.8, seed=1).rate(name) for name in names]
    assert min(rates) >= 0.2
    assert max(rates) <= 0.8
    assert max(rates) - min(rates) > 0.3
    assert rates != [Quality(low=0.2, high=0.8, seed=2).rate(name) for name in names]
    assert {Quality(faulty=0.5).rate(name) for name in names} == {0.5}


@pytest.mark.parametrize("wrong", [{"faulty": 1.5}, {"low": -0.1}, {"low": 0.9, "high": 0.1}])
def test_impossible_shares_are_refused(wrong):
    with pytest.raises(ValueError, match="expected"):
        Quality(**wrong)
