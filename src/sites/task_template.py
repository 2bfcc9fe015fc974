"""A task template: an instruction with blanks, and what belongs to it.

Owns ``TaskTemplate`` and ``Intent``. Sites' task modules import this module (never ``sites.tasks``,
which imports the sites). Invariants: parameters are JSON values and never contain the answer of a
question; evaluations use WebArena's three evaluators only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

from records.environment import Observation
from records.episodes import Milestone, Task

Parameters = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Intent:
    """What an expert wants to do next, by accessible name rather than by id.

    ``kind`` is an ``Action.kind``; ``name``, ``role`` and ``nth`` choose the element of the current
    observation, ``argument`` is the text, option or exit message. ``rivals`` marks a choice that an
    inattentive person could get wrong: a regular expression for what else they might have taken (names
    of elements for ``click``, options for ``select``, visible text for ``exit``; numbers for ``type``). ``note`` is
    what the expert writes down of the current page, because a later action needs it and the page will be gone.
    """

    kind: str
    name: str | None = None
    role: str | None = None
    nth: int = 0
    argument: str | None = None
    rivals: str | None = None
    note: str | None = None


Skill = Generator[Intent, Observation, Observation]
"""Part of an expert: yields intents, is sent what each led to, and returns the last of it."""
Expert = Generator[Intent, Observation, None]


def noting(note: str | None, skill: Skill) -> Skill:
    """Play ``skill``; its first action writes ``note`` down, where there is one."""
    seen = yield replace(next(skill), note=note)
    while True:
        try:
            intent = skill.send(seen)
        except StopIteration as end:
            last: Observation = end.value
            return last
        seen = yield intent


@dataclass(frozen=True)
class TaskTemplate:
    """One kind of task of one site, or of several.

    ``sample(data, rng)`` draws parameters; ``intent`` is a format string over them; ``evaluation``
    and ``milestones`` (exactly four, in the order in which they are reached) are computed from the
    parameters and the site's data; ``expert(task)`` yields intents, is sent the observation after
    each, and ends with an ``exit``. ``horizon`` is the expert's number of actions, exit included: a
    number, or a function of parameters and data. ``split`` is train, validation or test. A task starts on
    the page ``start`` of ``site``. ``also`` names further sites that it visits; ``data`` is then a mapping
    from each site's name to that site's data. ``scripted`` says that its pages need their scripts, so that
    it cannot be played without a browser.
    """

    name: str
    site: str
    intent: str
    sample: Callable[[Any, random.Random], Parameters]
    evaluation: Callable[[Parameters, Any], dict[str, Any]]
    milestones: Callable[[Parameters, Any], tuple[Milestone, Milestone, Milestone, Milestone]]
    expert: Callable[[Task], Expert]
    horizon: int | Callable[[Parameters, Any], int]
    require_login: bool = True
    split: str = "train"
    start: str = "/"
    also: tuple[str, ...] = ()
    scripted: bool = False

    @property
    def sites(self) -> tuple[str, ...]:
        """All sites that its tasks visit, the one they start on first."""
        return (self.site, *self.also)

    def steps(self, parameters: Parameters, data: Any) -> int:
        """Return the expert's number of actions for these parameters."""
        return self.horizon if isinstance(self.horizon, int) else self.horizon(parameters, data)
