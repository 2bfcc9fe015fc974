"""Agents that are made to fail in a known way: what the failure analyzer is held against.

Owns the scripts and their labels. A script is given a task, its first page and a source of randomness, and yields the
text of each action. Labels hold by construction: they say what the script does, and no rule of the analyzer is asked.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass

import numpy as np

from analysis.failure_modes import Mode
from environments.interface.grammar import format_action
from records.environment import Action, Element, Observation
from records.episodes import NO_POLICY, Task
from rollout_workers.agent import Decision, Turn
from sites.demonstrations import Quality, demonstrate
from sites.experts import Expert, resolve
from sites.tasks import expert_of

Script = Generator[str, Observation, None]
_NOTHING = np.zeros(0, np.int32)


class Unsuitable(Exception):
    """This task cannot be failed in this way."""


@dataclass(slots=True)
class Situation:
    """What a script knows: the task, the names of what the expert acts on, chance, and the first page.

    ``key_step`` is where the script goes wrong, as it notes itself.
    """

    task: Task
    expert_names: frozenset[str]
    rng: random.Random
    first: Observation | None = None
    key_step: int | None = None

    @property
    def seen(self) -> Observation:
        """The first page."""
        assert self.first is not None
        return self.first

    @property
    def room(self) -> int:
        """Actions that the task allows."""
        return self.task.max_steps


class ScriptedFailure:
    """An ``Agent`` that says what the script of a cause says."""

    def __init__(self, cause: Cause, at: Situation) -> None:
        self._script, self._at = cause(at), at

    async def decide(self, turn: Turn) -> Decision:
        """Return the script's next text as an action without tokens."""
        if turn.index == 0:
            self._at.first = turn.observation
            text = next(self._script)
        else:
            text = self._script.send(turn.observation)
        return Decision(_NOTHING, _NOTHING, _NOTHING.astype(np.float32), text, NO_POLICY, 0.0, 0)


def solves(at: Situation) -> Script:
    """Do what the expert does, its exit and all."""
    expert, seen = expert_of(at.task), at.seen
    intent = next(expert)
    while True:
        seen = yield format_action(resolve(intent, seen))
        intent = expert.send(seen)


def stops_early(at: Situation) -> Script:
    """Follow the expert for a while, then say that it is done."""
    steps = _between(at, 2, at.task.horizon - 2)
    yield from _follow(at, expert_of(at.task), steps)
    at.key_step = steps
    yield _exit("done")


def answers_wrong(at: Situation) -> Script:
    """Do all that the expert does, and answer something else."""
    yield from _follow(at, expert_of(at.task))
    at.key_step = at.task.horizon - 1
    yield _exit(f"perhaps {at.rng.randint(10_000, 99_999)}")


def takes_wrong_item(at: Situation) -> Script:
    """Do what a careless person does, who takes another item or option."""
    wrong = demonstrate(at.task, at.rng.randrange(2**30), Quality(faulty=1.0, detours=0.0, habitual=0.0))
    intent, seen = next(wrong), at.seen
    while True:
        seen = yield format_action(resolve(intent, seen))
        intent = wrong.send(seen)


def wanders_and_exits(at: Situation) -> Script:
    """Leave the expert's way, look at a few pages, and say that it is done."""
    seen = yield from _follow(at, expert_of(at.task), 1)
    at.key_step = 1
    yield from _wander(at, seen, _between(at, 2, min(5, at.room - 2)))
    yield _exit("done")


def loops_and_exits(at: Situation) -> Script:
    """Go round in circles, then say that it is done."""
    _room(at, 8)
    at.key_step = 0
    link = _link(at, at.seen)
    for _ in range(3):
        yield _click(link)
        yield format_action(Action("go_backward"))
    yield _exit("done")


def clicks_the_same(at: Situation) -> Script:
    """Click one link over and over that is on every page it leads to."""
    seen = yield from _follow(at, expert_of(at.task), _before_loop(at, 5))
    link = _link(at, seen)
    while True:
        seen = yield _click(_named(seen, link.name))


def types_the_same(at: Situation) -> Script:
    """Type the same text into the same field over and over."""
    seen = yield from _follow(at, expert_of(at.task), _before_loop(at, 5))
    fields = [element for element in seen.elements if element.role in ("searchbox", "textbox")]
    if not fields:
        raise Unsuitable
    while True:
        yield format_action(Action("type", "something", fields[0].element_id))


def says_the_same(at: Situation) -> Script:
    """Say the same sentence, which is no action, over and over."""
    yield from _follow(at, expert_of(at.task), _before_loop(at, 5))
    while True:
        yield "I should look at the page again before I go on."


def back_and_forth(at: Situation) -> Script:
    """Follow a link and come back, over and over."""
    seen = yield from _follow(at, expert_of(at.task), _before_loop(at, 7))
    link = _link(at, seen)
    while True:
        _elsewhere(seen, (yield _click(link)))
        yield format_action(Action("go_backward"))


def three_in_turn(at: Situation) -> Script:
    """Follow three links that are on every page, in turn."""
    seen = yield from _follow(at, expert_of(at.task), _before_loop(at, 11))
    names = sorted({element.name for element in seen.elements if element.role == "link" and element.name})
    if len(names) < 3:
        raise Unsuitable
    at.rng.shuffle(names)
    for name in names[:3] * at.room:
        seen = yield _click(_named(seen, name))


def two_there_and_back(at: Situation) -> Script:
    """Follow a link and one on the page after it, come back twice, over and over."""
    seen = yield from _follow(at, expert_of(at.task), _before_loop(at, 13))
    first = _link(at, seen)
    there = _elsewhere(seen, (yield _click(first)))
    second = _link(at, there)
    while True:
        _elsewhere(there, (yield _click(second)))
        for _ in range(2):
            yield format_action(Action("go_backward"))
        yield _click(first)


def exits_at_once(at: Situation) -> Script:
    """Say that it is done without doing anything."""
    _horizon(at, 3)
    at.key_step = 0
    yield _exit("done")


def exits_second(at: Situation) -> Script:
    """Take one action, and say that it is done."""
    _horizon(at, 4)
    yield from _follow(at, expert_of(at.task), 1)
    at.key_step = 1
    yield _exit("done")


def begins_with_prose(at: Situation) -> Script:
    """Talk, then look at pages without any aim."""
    at.key_step = 0
    yield "Let me think about what this page is for."
    seen = yield "There seem to be several links; I will try one of them."
    yield from _wander(at, seen)


def begins_with_what_is_not_there(at: Situation) -> Script:
    """Click elements that the page does not have, then look at pages without any aim."""
    at.key_step = 0
    seen = at.seen
    for number in (4711, 4712):
        seen = yield format_action(Action("click", element_id=number))
    yield from _wander(at, seen)


def begins_distracted(at: Situation) -> Script:
    """Follow a link that has nothing to do with the task, and never come to it."""
    at.key_step = 0
    yield from _wander(at, at.seen)


def never_exits(at: Situation) -> Script:
    """Do all that the expert does, and go on instead of saying so."""
    _room(at, at.task.horizon + 2)
    seen = yield from _follow(at, expert_of(at.task))
    at.key_step = at.task.horizon - 1
    yield from _wander(at, seen)


def wanders_midway(at: Situation) -> Script:
    """Begin like the expert, then look at pages without any aim."""
    steps = _between(at, 1, at.task.horizon // 2)
    seen = yield from _follow(at, expert_of(at.task), steps)
    at.key_step = steps
    yield from _wander(at, seen)


def is_too_slow(at: Situation) -> Script:
    """Do what the expert does, look at another page after each action, and run out of steps."""
    _horizon(at, 5)
    expert, seen, taken = expert_of(at.task), at.seen, 0
    at.key_step = 0
    intent = next(expert)
    while intent.kind != "exit":
        link = _link(at, seen)
        elsewhere = yield _click(link)
        if elsewhere.url != seen.url:
            seen = yield format_action(Action("go_backward"))
        seen = yield format_action(resolve(intent, seen))
        taken += 1
        intent = expert.send(seen)
    raise Unsuitable


Cause = Callable[[Situation], Script]
CAUSES: dict[Mode, tuple[Cause, ...]] = {
    Mode.WRONG_TERMINATION: (stops_early, answers_wrong, takes_wrong_item, wanders_and_exits, loops_and_exits),
    Mode.STUCK: (
        clicks_the_same, types_the_same, says_the_same, back_and_forth, three_in_turn, two_there_and_back,
    ),
    Mode.NO_ATTEMPT: (
        exits_at_once, exits_second, begins_with_prose, begins_with_what_is_not_there, begins_distracted, never_exits,
    ),
    Mode.OTHER: (wanders_midway, is_too_slow),
}  # fmt: skip
"""The ways to fail, by the mode that each is by construction."""


def _follow(at: Situation, expert: Expert, steps: int | None = None) -> Generator[str, Observation, Observation]:
    """Take the expert's actions, at most ``steps`` of them, up to its exit; return the page after them."""
    intent, seen, taken = next(expert), at.seen, 0
    while intent.kind != "exit" and taken != steps:
        seen = yield format_action(resolve(intent, seen))
        taken += 1
        intent = expert.send(seen)
    return seen


def _wander(at: Situation, seen: Observation, steps: int | None = None) -> Generator[str, Observation, Observation]:
    """Follow links that the expert does not use, none of them twice on one page."""
    followed: set[tuple[str, str]] = set()
    while steps is None or len(followed) < steps:
        links = [link for link in _strange(at, seen) if (seen.url, link.name) not in followed]
        if not links:
            raise Unsuitable
        link = at.rng.choice(links)
        followed.add((seen.url, link.name))
        seen = yield _click(link)
    return seen


def _strange(at: Situation, seen: Observation) -> list[Element]:
    return [e for e in seen.elements if e.role == "link" and e.name and e.name not in at.expert_names]


def _link(at: Situation, seen: Observation) -> Element:
    links = _strange(at, seen)
    if not links:
        raise Unsuitable
    return at.rng.choice(links)


def _elsewhere(before: Observation, now: Observation) -> Observation:
    """Return the page that a link led to; a link to its own page leaves nothing to come back from."""
    if before.url == now.url:
        raise Unsuitable
    return now


def _named(seen: Observation, name: str) -> Element:
    try:
        return seen.find(name, "link")
    except LookupError as error:
        raise Unsuitable from error


def _before_loop(at: Situation, needed: int) -> int:
    """Draw after how many of the expert's actions a loop begins that needs so many, and note it."""
    at.key_step = _between(at, 0, min(at.task.horizon - 2, at.room - needed))
    return at.key_step


def _between(at: Situation, low: int, high: int) -> int:
    if high < low:
        raise Unsuitable
    return at.rng.randint(low, high)


def _horizon(at: Situation, least: int) -> None:
    if at.task.horizon < least:
        raise Unsuitable


def _room(at: Situation, least: int) -> None:
    if at.room < least:
        raise Unsuitable


def _click(element: Element) -> str:
    return format_action(Action("click", element_id=element.element_id, comment=element.name))


def _exit(message: str) -> str:
    return format_action(Action("exit", message))
