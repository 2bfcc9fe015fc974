"""Imperfect demonstrations of chains: what slips fails, leaves its trace, and the rest is done all the same."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from records.episodes import Task
from sites.chains.atoms import ATOMS
from sites.chains.chain import Chain
from sites.chains.slips import Slip, plan_slips
from sites.demonstrations import demonstrate
from sites.quality import Quality
from tests.sites.chain_tasks import chains, single
from tests.sites.player import play

OFTEN = Quality(faulty=0.5, habitual=0.0)
Slips = tuple[Slip | None, ...]


def drawn_slips(chain: Chain, rng: random.Random, quality: Quality) -> Slips:
    return tuple(planned.slip for planned in plan_slips(chain, rng, quality))


def slips_of(task: Task, seed: int, quality: Quality) -> Slips:
    chain = Chain.filled(task.parameters)
    return drawn_slips(chain, random.Random(f"demonstration/{seed}/{task.task_id}"), quality)


def done_well(slips: Slips) -> set[int]:
    """The atoms that are done as asked, whatever happens to the others."""
    ends = slips.index(Slip.STOPPED) if Slip.STOPPED in slips else len(slips)
    return {index for index, slip in enumerate(slips[:ends]) if slip in (None, Slip.DETOUR, Slip.SWAPPED)}


async def test_whatever_slips_but_a_detour_fails_and_what_is_not_done_is_no_milestone(app):
    seen: Counter[Slip | None] = Counter()
    for task in chains("train", 8):
        for seed in range(4):
            slips = slips_of(task, seed, OFTEN)
            seen.update(slips)
            played = await play(app, task, demonstrate(task, seed, OFTEN))
            assert played.outcome == all(slip in (None, Slip.DETOUR) for slip in slips), f"{slips} {played.actions}"
            assert len(played.actions) <= task.max_steps
            for index, slip in enumerate(slips):
                swapped = index > 0 and slips[index - 1] is Slip.SWAPPED
                if slip in (Slip.SKIPPED, Slip.WRONG, Slip.STOPPED) and not swapped:
                    assert not played.milestones[-1][index], f"{task.intent} {slips} {played.actions}"
    assert set(seen) == {None, *Slip}


@pytest.mark.parametrize("name", ATOMS)
async def test_every_atom_can_go_wrong_in_ways_that_fail(app, name):
    task, quality = single(name), Quality(faulty=1.0, detours=0.0, habitual=0.0)
    found: Counter[Slip | None] = Counter()
    for seed in range(6):
        played = await play(app, task, demonstrate(task, seed, quality))
        assert played.outcome == 0.0, f"{task.intent}: {played.actions}"
        found.update(slips_of(task, seed, quality))
    assert found[Slip.WRONG]


async def test_what_goes_wrong_leaves_a_trace_and_the_episode_goes_on(app):
    """After an atom that went wrong the others are done, but where the mistake took away what they need."""
    quality, kept, lost = Quality(faulty=0.4, habitual=0.0, detours=0.0), 0, 0
    for task in chains("train", 8):
        for seed in range(4):
            slips = slips_of(task, seed, quality)
            played = await play(app, task, demonstrate(task, seed, quality))
            for index in done_well(slips):
                kept += played.milestones[-1][index]
                lost += not played.milestones[-1][index]
    assert kept > 20 * lost


async def test_flawless_demonstrations_succeed_and_a_seed_gives_one_demonstration(app):
    for task in chains("train", 4):
        played = await play(app, task, demonstrate(task, 0, Quality(faulty=0.0)))
        assert (played.outcome, len(played.actions)) == (1.0, task.horizon)
        first, again = [await play(app, task, demonstrate(task, 3, OFTEN)) for _ in range(2)]
        assert first == again


def test_few_slips_end_the_episode_and_atoms_have_habits():
    chain = Chain.filled(next(t for t in chains("train", 8) if t.template == "chains.4").parameters)
    rng, quality = random.Random(0), Quality(faulty=1.0, detours=0.0, habitual=0.0)
    drawn = Counter(slip for _ in range(1000) for slip in drawn_slips(chain, rng, quality))
    assert 0.05 < drawn[Slip.STOPPED] / drawn.total() < 0.2
    assert drawn[Slip.WRONG] > drawn[Slip.SKIPPED] > drawn[Slip.SWAPPED] > 0
    always = Quality(faulty=1.0, detours=0.0, habitual=1.0)
    assert len({drawn_slips(chain, rng, always) for _ in range(50)}) == 1


async def test_a_habit_always_goes_the_same_way(app):
    """Of what may be taken instead it is the first on the page; without habits it is this or that."""
    task = next(task for task in chains("train", 40) if task.template == "chains.1" and usual_of(task) is Slip.WRONG)
    ways = {}
    for habitual in (1.0, 0.0):
        quality = Quality(faulty=1.0, detours=0.0, habitual=habitual)
        played = [await play(app, task, demonstrate(task, seed, quality)) for seed in range(12)]
        ways[habitual] = {tuple(map(str, one.actions)) for one in played}
    assert len(ways[1.0]) == 1
    assert len(ways[0.0]) > 2


def usual_of(task: Task) -> Slip | None:
    return slips_of(task, 0, Quality(faulty=1.0, detours=0.0, habitual=1.0))[0]


def test_an_atoms_share_of_slips_is_its_own():
    quality = Quality(low=0.2, high=0.6, seed=3)
    rates = {name: quality.rate(name) for name in ATOMS}
    assert max(rates.values()) - min(rates.values()) > 0.2
    assert 0.2 <= min(rates.values()) <= max(rates.values()) <= 0.6
