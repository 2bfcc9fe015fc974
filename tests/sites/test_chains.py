"""Chains without a browser: experts solve them atom by atom, and every milestone means what it says."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from environments.browserless.environment import BrowserlessEnvironment
from judges.milestones import Acted, reached, validate_task
from records.episodes import Task
from sites.chains.atom import WORDINGS
from sites.chains.atoms import ATOMS, HELD_OUT
from sites.chains.chain import JOININGS, Chain, approach
from sites.chains.settings import MOST_ATOMS
from sites.chains.source import ChainTasks
from sites.chains.splits import SPLITS
from sites.experts import Expert, resolve
from sites.skills import finish
from sites.tasks import LONGEST_HORIZON, expert_of
from tests.sites.chain_tasks import SOURCE, chains, single
from tests.sites.player import play


def doing(task: Task, indices: list[int]) -> Expert:
    """An expert that does these atoms of the chain in this order, and no other one."""
    chain = Chain.filled(task.parameters)
    site, at_home = chain.sites[0], True
    for index in indices:
        yield from approach(chain.atoms[index], site, at_home=at_home)
        yield from chain.atoms[index].expert()
        site, at_home = chain.atoms[index].site, False
    yield from finish()


@pytest.mark.parametrize("name", ATOMS)
async def test_an_atoms_milestone_is_true_just_where_its_wish_is_fulfilled(app, name):
    for seed in range(2):
        task = single(name, seed)
        env, expert, history = BrowserlessEnvironment(app), expert_of(task), list[Acted]()
        seen, intent, taken = await env.reset(task), next(expert), 1
        while intent.kind != "exit":
            assert reached(task.milestones, (), seen, history) == (False,), f"{task.intent}: {seen.text}"
            assert (await env.evaluate("done")).outcome == 0.0, f"{task.intent}: {seen.text}"
            seen = await env.step(resolve(intent, seen))
            assert not seen.feedback, seen.feedback
            intent, taken = expert.send(seen), taken + 1
        assert reached(task.milestones, (), seen, history) == (True,), f"{task.intent}: {seen.text}"
        assert (await env.evaluate("done")).outcome == 1.0, task.intent
        assert taken == task.horizon
        await env.close()


@pytest.mark.parametrize("split", SPLITS)
async def test_experts_solve_chains_of_every_split_in_horizon_steps_and_reach_one_milestone_after_the_other(app, split):
    for task in chains(split, 8):
        validate_task(task, count=int(task.template.removeprefix("chains.")))
        played = await play(app, task)
        assert played.outcome == 1.0, task.intent
        assert len(played.actions) == task.horizon <= LONGEST_HORIZON
        assert not any(played.feedback)
        for before, after in zip(played.milestones, played.milestones[1:], strict=False):
            assert list(after) == sorted(after, reverse=True)
            assert sum(after) - sum(before) in (0, 1)
        assert (sum(played.milestones[0]), sum(played.milestones[-1])) == (0, len(task.milestones))


@pytest.mark.parametrize("split", SPLITS)
async def test_doing_nothing_fails(app, split):
    env = BrowserlessEnvironment(app)
    for task in chains(split, 8):
        for answer in (None, "done"):
            await env.reset(task)
            assert (await env.evaluate(answer)).outcome == 0.0, task.intent
    await env.close()


async def test_who_leaves_any_atom_out_fails_by_that_milestone_alone(app):
    for task in chains("test", 4)[1:]:
        for missing in range(len(task.milestones)):
            left = [index for index in range(len(task.milestones)) if index != missing]
            played = await play(app, task, doing(task, left))
            assert played.outcome == 0.0, task.intent
            assert played.milestones[-1] == tuple(index in left for index in range(len(task.milestones)))


async def test_who_does_everything_in_another_order_fails(app):
    for task in chains("train", 4)[1:]:
        asked = list(range(len(task.milestones)))
        for order in (asked[::-1], [*asked[:-2], asked[-1], asked[-2]]):
            played = await play(app, task, doing(task, order))
            assert all(played.milestones[-1]), task.intent
            assert played.outcome == 0.0, task.intent


async def test_the_solution_of_another_chain_of_the_same_atoms_fails(app):
    task = chains("train", 4)[3]
    other = SOURCE.similar(task, random.Random(0))
    assert other is not None
    swapped = replace(task, evaluation=other.evaluation)
    assert (await play(app, swapped)).outcome == 0.0


def test_there_are_forty_atoms_and_six_of_them_are_held_out():
    assert len(ATOMS) >= 40
    assert len(HELD_OUT) == 6
    assert set(ATOMS) > HELD_OUT
    assert {kind.site for kind in ATOMS.values()} == {"shop", "forum", "map", "wiki", "code", "admin"}


@pytest.mark.parametrize("name", ATOMS)
def test_an_atoms_wordings_say_all_parameters_in_different_places(name):
    kind = ATOMS[name]
    assert len({wording.lower() for wording in kind.wordings}) == WORDINGS
    blanks = set(kind._blanks)
    for wording in kind.wordings:
        assert all(f"{{{blank}}}" in wording for blank in blanks), wording
        assert not wording.endswith("."), wording
        assert wording[0].isupper(), wording
    assert len({tuple(sorted(blanks, key=lambda b: w.index(f"{{{b}}}"))) for w in kind.wordings}) > (len(blanks) > 1)


def test_every_joining_says_all_instructions_in_their_order():
    task = next(task for task in chains("train", 8) if task.template == "chains.4")
    for joining in range(len(JOININGS)):
        chain = replace(Chain.filled(task.parameters), joining=joining)
        places = [chain.intent.lower().index(link.atom.worded(link.wording).lower()) for link in chain.links]
        assert places == sorted(places), chain.intent
        assert chain.intent.endswith(".")


def test_a_chain_is_made_again_from_its_parameters_as_json():
    for split in SPLITS:
        for task in chains(split, 8):
            assert SOURCE.task(task.template, json.loads(json.dumps(task.parameters))) == task


def test_the_same_seed_draws_the_same_chains_and_another_one_others():
    first = SOURCE.task_set(1, "train", 6)
    assert SOURCE.task_set(1, "train", 6) == first
    assert not {task.task_id for task in SOURCE.task_set(2, "train", 6)} & {task.task_id for task in first}


def test_chains_are_on_the_named_sites_only_and_need_sites_that_have_atoms():
    tasks = ChainTasks(("shop", "forum")).task_set(0, "train", 6)
    assert {site for task in tasks for site in task.sites} <= {"shop", "forum"}
    with pytest.raises(ValueError, match="chains have atoms on .*, found across; name sites only"):
        ChainTasks(("shop", "across"))
    with pytest.raises(ValueError, match="chains have no split 'test_templates': expected one of train, validation"):
        SOURCE.task_set(0, "test_templates", 1)


def test_chains_of_all_lengths_from_one_to_eight_can_be_drawn():
    lengths = {len(task.milestones) for split in ("train", "test_long") for task in chains(split, 8)}
    assert {1, 2, 4, 6, MOST_ATOMS} <= lengths
