"""Plays a site's task with its scripted expert, or with somebody less careful, without a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from judges.subgoals import Acted, reached
from replay.records import Task
from rollout_workers.browserless import BrowserlessEnvironment
from rollout_workers.environment import Environment, Observation
from sites.experts import Expert, Intent, resolve
from sites.tasks import template_named

Change = Callable[[Intent, Observation], Intent | None]


class Played:
    """What came of one episode: outcome, actions taken, the milestones after each of them, what the agent was told."""

    def __init__(self) -> None:
        self.outcome = -1.0
        self.actions: list[str] = []
        self.milestones: list[tuple[bool, ...]] = []
        self.notices: list[str] = []


def expert(task: Task) -> Expert:
    """The expert of the task's template."""
    return template_named(task.template).expert(task)


async def play(app: Any, task: Task, actor: Expert | None = None, change: Change | None = None) -> Played:
    """Play one episode without a browser; see ``play_in``."""
    return await play_in(BrowserlessEnvironment(app), task, actor, change)


async def play_in(env: Environment, task: Task, actor: Expert | None = None, change: Change | None = None) -> Played:
    """Follow ``actor`` (the task's expert by default) to its exit.

    ``change`` may alter an intent or, by None, leave it out; an actor that then loses its way says "done".
    """
    actor, played, history = actor or expert(task), Played(), list[Acted]()
    seen = await env.reset(task)
    played.milestones.append(reached(task.subgoals, (), seen, history))
    intent, answer = next(actor), None
    while answer is None:
        wanted = change(intent, seen) if change else intent
        try:
            if wanted is not None:
                action = resolve(wanted, seen)
                played.actions.append(f"{action.kind} {action.comment or ''}".strip())
                if action.kind == "exit":
                    answer = action.argument or ""
                    break
                element = None if action.element_id is None else seen.elements[action.element_id]
                history.append(Acted.of(action, element))
                seen = await env.step(action)
                played.notices.append(seen.notice or "")
                played.milestones.append(reached(task.subgoals, played.milestones[-1], seen, history))
            intent = actor.send(seen)
        except (LookupError, StopIteration):
            if change is None:
                raise
            answer = "done"
    played.outcome = (await env.evaluate(answer)).outcome
    await env.close()
    return played
