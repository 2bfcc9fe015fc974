"""What holds for the tasks of every site, as assertions: experts solve them, who does less or other things does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import Any

from environments.browserless.environment import BrowserlessEnvironment
from judges.milestones import validate_task
from records.environment import Observation
from records.episodes import Task
from sites.demonstrations import Fault, demonstrate
from sites.experts import Intent
from sites.quality import Quality
from sites.tasks import all_templates, generate
from tests.sites.player import fault_of, play, rival_of


@lru_cache(maxsize=2)
def tasks_by_template(names: tuple[str, ...], seed: int, per_template: int) -> dict[str, list[Task]]:
    """Up to ``per_template`` tasks of every template of these sites and collections, in the templates' order."""
    tasks: dict[str, list[Task]] = {template.name: [] for template in all_templates(names)}
    for task in generate(seed, names, per_template):
        tasks[task.template].append(task)
    return tasks


async def assert_solved_in_order(app: Any, tasks: Sequence[Task]) -> None:
    """The expert needs ``horizon`` actions, is told nothing, and passes milestones in order, the last at the end."""
    for task in tasks:
        validate_task(task)
        played = await play(app, task)
        assert played.outcome == 1.0, task.intent
        assert len(played.actions) == task.horizon, played.actions
        assert not any(played.feedback), played.feedback
        for vector in played.milestones:
            assert list(vector) == sorted(vector, reverse=True), f"{task.intent}: {vector}"
        assert played.milestones[-1] == (True,) * 4
        assert played.milestones[-2][3] is False


async def assert_nothing_passes(app: Any, tasks: Sequence[Task]) -> None:
    """Nobody solves a task by doing nothing, whatever the answer."""
    env = BrowserlessEnvironment(app)
    for task in tasks:
        for answer in (None, "done", ""):
            await env.reset(task)
            assert (await env.evaluate(answer)).outcome == 0.0, f"{task.intent}: {answer!r}"
    await env.close()


async def assert_stopping_fails(app: Any, task: Task, after: int) -> None:
    """Who follows the expert for ``after`` actions and then says "done" has not solved the task."""
    asked = 0

    def stop(intent: Intent, seen: Observation) -> Intent:
        nonlocal asked
        asked += 1
        return Intent("exit", argument="done") if asked > after else intent

    assert (await play(app, task, change=stop)).outcome == 0.0, f"{task.intent}: {after}"


async def assert_only_detours_succeed(app: Any, tasks: Sequence[Task]) -> None:
    """Of faulty demonstrations, one of each fault, that with a detour solves the task and those with another do not."""
    always = Quality(faulty=1.0, detours=0.3, habitual=0.0)
    seen: Counter[Fault] = Counter()
    for task in tasks:
        drawn = {fault_of(task, seed, always): seed for seed in reversed(range(50))}
        for fault, seed in drawn.items():
            played = await play(app, task, demonstrate(task, seed, always))
            seen[fault] += 1
            assert len(played.actions) <= task.max_steps
            assert played.outcome == (fault is Fault.DETOUR), f"{task.intent} {fault}: {played.actions}"
    assert seen[Fault.WRONG_ITEM]
    assert seen[Fault.DETOUR]


async def assert_wrong_choices_fail(app: Any, task: Task) -> int:
    """A rival taken at one of the expert's choices leads to failure; return how many choices had a rival."""
    wrong = 0
    for choice in count():
        choices, taken = 0, False

        def take_rival(intent: Intent, seen: Observation, choice: int = choice) -> Intent:
            nonlocal choices, taken
            if intent.rivals is None or taken:
                return intent
            choices += 1
            rival = rival_of(intent, seen) if choices - 1 == choice else None
            taken = rival is not None
            return rival or intent

        played = await play(app, task, change=take_rival)
        if taken:
            wrong += 1
            assert played.outcome == 0.0, f"{task.intent}: choice {choice}"
        if choices <= choice:
            break
    return wrong


async def assert_short_pages_on_the_way(app: Any, task: Task, lines: tuple[int, int], characters: int) -> None:
    """Every page that the expert acts on has a number of lines between these, and at most so many characters."""
    for page in (await play(app, task)).pages[:-1]:
        assert lines[0] <= len(page.text.splitlines()) <= lines[1], page.text
        assert len(page.text) <= characters, page.text


def assert_plain_instructions(tasks: Sequence[Task], words: tuple[int, int]) -> None:
    """Instructions have a number of words between these, and parameters do not hold the answer."""
    for task in tasks:
        assert words[0] <= len(task.intent.split()) <= words[1], task.intent
        for answer in (task.evaluation["reference_answers"] or {}).values():
            assert answer not in task.parameters.values(), task.intent
