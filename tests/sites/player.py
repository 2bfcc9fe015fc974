"""Plays a site's task with its scripted expert, or with somebody less careful."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from environments.browserless.environment import BrowserlessEnvironment
from environments.environment import Environment
from judges.milestones import Acted, reached
from records.environment import Observation
from records.episodes import Task
from sites.demonstrations import Fault, planned_fault
from sites.experts import Expert, Intent, resolve
from sites.quality import Quality
from sites.tasks import expert_of

Change = Callable[[Intent, Observation], Intent | None]


@dataclass(slots=True)
class Played:
    """What came of one episode: outcome, actions taken, what the agent was told after each, and what it saw.

    ``milestones`` and ``pages`` begin with the first page, before any action.
    """

    outcome: float = -1.0
    actions: list[str] = field(default_factory=list)
    milestones: list[tuple[bool, ...]] = field(default_factory=list)
    feedback: list[str] = field(default_factory=list)
    pages: list[Observation] = field(default_factory=list)

    @property
    def shown(self) -> list[str]:
        """Address and text of every page, for comparing episodes in environments of different kinds."""
        return [f"{page.url}\n{page.text}" for page in self.pages]


async def play(app: Any, task: Task, actor: Expert | None = None, change: Change | None = None) -> Played:
    """Play one episode without a browser; see ``play_in``."""
    env = BrowserlessEnvironment(app)
    try:
        return await play_in(env, task, actor, change)
    finally:
        await env.close()


async def play_in(env: Environment, task: Task, actor: Expert | None = None, change: Change | None = None) -> Played:
    """Follow ``actor`` (the task's expert by default) to its exit.

    ``change`` may alter an intent or, by None, leave it out; an actor that then loses its way says "done".
    """
    actor, played, history = actor or expert_of(task), Played(), list[Acted]()
    seen = await env.reset(task)
    played.pages.append(seen)
    played.milestones.append(reached(task.milestones, (), seen, history))
    intent, answer = next(actor), None
    while answer is None:
        wanted = change(intent, seen) if change else intent
        try:
            if wanted is not None:
                action = resolve(wanted, seen)
                said = (action.kind, action.comment, action.argument)
                played.actions.append(" ".join(part for part in said if part))
                if action.kind == "exit":
                    answer = action.argument or ""
                    break
                element = None if action.element_id is None else seen.elements[action.element_id]
                history.append(Acted.of(action, element))
                seen = await env.step(action)
                played.pages.append(seen)
                played.feedback.append(seen.feedback or "")
                played.milestones.append(reached(task.milestones, played.milestones[-1], seen, history))
            intent = actor.send(seen)
        except (LookupError, StopIteration):
            if change is None:
                raise
            answer = "done"
    played.outcome = (await env.evaluate(answer)).outcome
    return played


def fault_of(task: Task, seed: int, quality: Quality) -> Fault:
    """The fault that the demonstration of this seed has."""
    plan = planned_fault(task, random.Random(f"demonstration/{seed}/{task.task_id}"), quality)
    assert plan is not None
    return plan.fault


def rival_of(intent: Intent, seen: Observation) -> Intent | None:
    """The first rival of what the expert takes, None where the page has none."""
    if intent.kind == "exit":
        found = [text for text in re.findall(intent.rivals, seen.page_text) if text != intent.argument]
        return replace(intent, argument=found[0]) if found else None
    if intent.kind == "select":
        options = seen.find(intent.name, intent.role).options
        found = [o for o in options if re.fullmatch(intent.rivals, o) and o not in (intent.argument, "all")]
        return replace(intent, argument=found[0]) if found else None
    names = [e.name for e in seen.elements if e.role == intent.role and re.fullmatch(intent.rivals, e.name)]
    names = [name for name in names if name != intent.name]
    return replace(intent, name=names[-1], nth=0) if names else None
