"""Skills: the pieces that experts are built of, each with a check of what is true when it is done.

Owns ``Skill`` and the single actions that all sites share. A site's own ``skills`` module builds its skills of them.
Invariants: skills read pages and their arguments, never a site's state; a skill's check holds on the page that it
ends on; ``rivals`` names what a careless person might have taken instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import update_wrapper
from typing import Generic, ParamSpec

from records.environment import Observation
from sites.checks import Check
from sites.experts import Actions, Intent

P = ParamSpec("P")
ANY = ".*"
NUMBER = r"\d+"


class Skill(Generic[P]):
    """Something that is done on a site, from a page where it can begin: call it to do it.

    ``act`` yields its actions; ``reached``, of the same arguments, returns the check that holds when they are done.
    """

    def __init__(self, act: Callable[P, Actions], reached: Callable[P, Check]) -> None:
        self.act, self.reached = act, reached
        update_wrapper(self, act)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Actions:
        """Return the actions of this skill."""
        return self.act(*args, **kwargs)


def skill(reached: Callable[..., Check]) -> Callable[[Callable[P, Actions]], Skill[P]]:
    """Make a function a skill; ``reached`` takes the same arguments and returns the skill's check."""
    return lambda act: Skill(act, reached)


def any_of(names: Iterable[str]) -> str:
    """Return the regular expression of these names, as rivals."""
    return "|".join(re.escape(name) for name in sorted(set(names)))


def click(name: str, role: str | None = None, rivals: str | None = None, nth: int = 0) -> Actions:
    """Click the element of this name, the ``nth`` of several."""
    return (yield Intent("click", name, role, nth, rivals=rivals))


def put(name: str, value: str, rivals: str | None = None) -> Actions:
    """Type a value into the field of this name."""
    return (yield Intent("type", name, "textbox", argument=value, rivals=rivals))


def write(fields: dict[str, str]) -> Actions:
    """Type a value into each of the named fields; numbers are easily mistyped."""
    seen: Observation | None = None
    for name, value in fields.items():
        seen = yield from put(name, value, NUMBER if value.isdigit() else None)
    if seen is None:
        raise ValueError("expected at least one field to write into, found none")
    return seen


def choose(name: str, option: str, rivals: str | None = ANY) -> Actions:
    """Choose an option of a select."""
    return (yield Intent("select", name, "select", argument=option, rivals=rivals))


def search(text: str, field: str = "Search", rivals: str | None = None) -> Actions:
    """Search for a text."""
    return (yield Intent("search", field, "searchbox", argument=text, rivals=rivals))


def open_listed(seen: Observation, name: str, rivals: str | None = None) -> Actions:
    """Open the link of this name in a list that may go on for several pages."""
    while not any(element.name == name and element.role == "link" for element in seen.elements):
        seen = yield from click("Next page", "link")
    return (yield from click(name, "link", rivals))


def finish(message: str = "done", rivals: str | None = None) -> Actions:
    """End the episode, with an answer where one was asked for."""
    return (yield Intent("exit", argument=message, rivals=rivals))


def noting(note: str | None, actions: Actions) -> Actions:
    """Play ``actions``; the first of them writes ``note`` down, where there is one."""
    seen = yield replace(next(actions), note=note)
    while True:
        try:
            intent = actions.send(seen)
        except StopIteration as end:
            last: Observation = end.value
            return last
        seen = yield intent
