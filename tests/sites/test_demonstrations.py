"""Demonstrations of all sites: as often and as wrong as they are asked to be, and repeatable."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from environments.interface.grammar import format_action, parse
from records.environment import Observation
from records.episodes import Task
from sites.demonstrations import demonstrate
from sites.experts import Intent, resolve
from sites.quality import Quality
from sites.registry import SITES
from sites.tasks import all_templates, generate
from tests.sites.player import play


def tasks(count: int = 1) -> list[Task]:
    return generate(11, tuple(SITES), per_template=count)


async def test_flawless_demonstrations_succeed(app):
    for task in tasks():
        played = await play(app, task, demonstrate(task, 0, Quality(faulty=0.0)))
        assert (played.outcome, len(played.actions)) == (1.0, task.horizon), task.intent


async def test_what_an_expert_writes_is_on_the_page_in_the_task_or_in_a_line_of_its_own(app):
    """A policy sees the current page and its own past actions; what an earlier page said must stand in a note."""
    noted = set()
    for task in generate(11, (*SITES, "across"), per_template=2):
        gone: list[str] = []
        own = [task.intent, task.intent.replace(",", "")]

        def look(intent: Intent, seen: Observation, task: Task = task, gone=gone, own=own) -> Intent:
            page, written = f"{seen.text}\n{seen.page_text}", intent.argument or ""
            known = written in page or any(written in line for line in own) or written in ("done", "N/A")
            assert known or not any(written in earlier for earlier in gone), f"{task.intent}: {intent}"
            gone.append(page)
            own.extend(line for line in (intent.name, intent.argument, intent.note) if line)
            if intent.note:
                noted.add(task.template)
            return intent

        assert (await play(app, task, change=look)).outcome == 1.0
    assert {"across.post_price", "across.tell_year_and_postcode", "map.compare_modes", "wiki.first_born"} <= noted


async def test_a_note_is_written_with_the_first_action_of_what_follows(app):
    task = next(t for t in generate(11, ("map",), per_template=1) if t.template == "map.compare_modes")
    for quality in (None, Quality(faulty=1.0, detours=1.0)):
        written: list[tuple[str, str]] = []

        def look(intent: Intent, seen: Observation, written=written) -> Intent:
            if intent.note:
                minutes = re.search(r"(\d+) min in all", seen.page_text)
                assert minutes, "a note was written on a page that does not say so"
                assert minutes[1] == intent.note
                action = parse(format_action(resolve(intent, seen)))
                written.append((action.kind, action.note or ""))
            return intent

        played = await play(app, task, demonstrate(task, 2, quality) if quality else None, look)
        assert (played.outcome, len(written)) == (1.0, 1)
        assert written[0][0] == "select"


async def test_faulty_demonstrations_of_every_template_end_within_max_steps(app):
    outcomes: Counter[float] = Counter()
    for task in tasks():
        for seed in range(2):
            quality = Quality(faulty=1.0, detours=0.0, habitual=0.0)
            played = await play(app, task, demonstrate(task, seed, quality))
            outcomes[played.outcome] += 1
            assert len(played.actions) <= task.max_steps, played.actions
    assert outcomes[0.0] >= 0.95 * outcomes.total()


async def test_detours_succeed_in_at_most_two_steps_more(app):
    for task in tasks():
        played = await play(app, task, demonstrate(task, 0, Quality(faulty=1.0, detours=1.0)))
        assert played.outcome == 1.0, f"{task.intent}: {played.actions}"
        assert len(played.actions) <= task.horizon + 2


async def test_the_same_seed_gives_the_same_demonstration(app):
    quality = Quality(faulty=1.0)
    for task in tasks()[::5]:
        first, second = [await play(app, task, demonstrate(task, 4, quality)) for _ in range(2)]
        assert first == second
    everything = [
        [(await play(app, task, demonstrate(task, seed, quality))).actions for task in tasks()[::5]] for seed in (4, 5)
    ]
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
