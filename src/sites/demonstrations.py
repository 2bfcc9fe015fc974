"""Demonstrations as people give them: mostly right, sometimes not.

Owns the three faults of templates' tasks (``sites.chains.slips`` has those of chains): stopping early, taking the wrong
item or option (or leaving a choice out), and a detour that still succeeds. Invariants: the same task, seed and quality
give the same demonstration; a template's share of faults and its habitual fault are fixed by the quality's seed, as
when everybody who was asked misunderstood the same kind of task; a demonstration always ends with an exit and never
names what is not on the page.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from records.environment import Observation
from records.episodes import Task
from sites.chains.chain import is_chain
from sites.chains.slips import demonstrate_chain
from sites.choices import is_option, is_there, rival_of
from sites.experts import Expert, Intent
from sites.quality import Quality
from sites.tasks import expert_of

_LATEST_STOPS = 3
"""An early stop leaves out this many actions at most."""
_WRONG_AT_A_CHOICE = 0.6
_LEAVES_CHOICE_OUT = 0.5


class Fault(StrEnum):
    """How a demonstration is imperfect."""

    EARLY_STOP = "early_stop"
    WRONG_ITEM = "wrong_item"
    DETOUR = "detour"


@dataclass(frozen=True, slots=True)
class _Plan:
    """What goes wrong, and where: ``step`` is the action at which an early stop or a detour happens."""

    fault: Fault
    step: int


def demonstrate(task: Task, seed: int, quality: Quality) -> Expert:
    """Return a demonstration of ``task``: its expert's intents, made imperfect as ``quality`` says."""
    if is_chain(task):
        return demonstrate_chain(task, seed, quality)
    rng = random.Random(f"demonstration/{seed}/{task.task_id}")
    expert = expert_of(task)
    plan = planned_fault(task, rng, quality)
    if plan is None:
        return expert
    if plan.fault is Fault.EARLY_STOP:
        return _stop_early(expert, plan.step)
    if plan.fault is Fault.DETOUR:
        return _wander(expert, plan.step, rng)
    return _take_wrong_item(expert, plan.step, rng, task.max_steps)


def planned_fault(task: Task, rng: random.Random, quality: Quality) -> _Plan | None:
    """Draw whether and how a demonstration of ``task`` is imperfect; None is a flawless one."""
    if rng.random() >= quality.rate(task.template):
        return None
    last = task.horizon - 2
    if rng.random() < quality.detours:
        return _Plan(Fault.DETOUR, rng.randint(1, max(1, last)))
    source = random.Random(f"habit/{quality.seed}/{task.template}") if rng.random() < quality.habitual else rng
    stops = min(_LATEST_STOPS, last)
    if stops >= 1 and source.random() < 0.5:
        return _Plan(Fault.EARLY_STOP, last + 1 - source.randint(1, stops))
    return _Plan(Fault.WRONG_ITEM, last)


def _stop_early(expert: Expert, step: int) -> Expert:
    intent = next(expert)
    for _ in range(step):
        if intent.kind == "exit":
            break
        intent = expert.send((yield intent))
    yield Intent("exit", argument="done")


def _wander(expert: Expert, step: int, rng: random.Random) -> Expert:
    """Follow a link and come back, once, from ``step`` on where no half-filled form and no open menu is lost."""
    intent, index, wandered = next(expert), 0, False
    before: Observation | None = None
    while intent.kind != "exit":
        seen = yield intent
        pressed = intent.role == "button"
        filled_in = intent.kind in ("type", "select") or intent.role in ("radio", "checkbox")
        intent, index = expert.send(seen), index + 1
        links = [element for element in seen.elements if element.role == "link"]
        # What was not there before, on the page that was, would not be there after coming back.
        revealed = pressed if before is None else before.url == seen.url and not is_there(intent, before)
        before = seen
        if not wandered and index >= step and links and not filled_in and not revealed:
            wandered = True
            link = rng.choice(links)
            nth = [e.element_id for e in links if e.name == link.name].index(link.element_id)
            elsewhere = yield Intent("click", link.name, "link", nth)
            # A link to the page itself leaves no trace in the history to go back over.
            if elsewhere.url != seen.url:
                yield Intent("go_backward")
    yield intent


def _take_wrong_item(expert: Expert, last: int, rng: random.Random, most: int) -> Expert:
    """Go wrong at one choice; who has not by the ``last`` action before the exit leaves that one out.

    On the wrong way there may be more to do than on the right one: after ``most`` actions people give up.
    """
    intent, wrong, index = next(expert), False, 0
    taken = 0
    seen: Observation | None = None
    while True:
        if not wrong and seen is not None and intent.rivals and (rng.random() < _WRONG_AT_A_CHOICE or index >= last):
            rival = rival_of(intent, seen, rng)
            wrong = rival is not None or is_option(intent)
            if is_option(intent) and (rival is None or rng.random() < _LEAVES_CHOICE_OUT):
                intent, index = expert.send(seen), index + 1
                continue
            intent = rival or intent
        taken += 1
        if intent.kind != "exit" and (taken == most or not wrong and index >= last > 0):
            intent = Intent("exit", argument="done")
        if seen is not None and not is_there(intent, seen):
            intent = Intent("exit", argument="done")
        if intent.kind == "exit":
            yield intent
            return
        seen = yield intent
        try:
            intent, index = expert.send(seen), index + 1
        except LookupError:
            # The expert has lost its way on the wrong page, and so would a person.
            intent = Intent("exit", argument="done")
