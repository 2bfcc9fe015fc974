"""What an expert wants to do, as intents, and intents turned into actions on what is on the page.

Owns ``Intent``, ``resolve`` and ``read``. An expert names what a person would look for; only here does a name
become an element id. Reads observations, never a site's state.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass

from records.environment import Action, Observation


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


Actions = Generator[Intent, Observation, Observation]
"""Part of an expert: yields intents, is sent what each led to, and returns the last of it."""
Expert = Generator[Intent, Observation, None]
"""All of a task."""


def resolve(intent: Intent, observation: Observation) -> Action:
    """Return the action that carries out ``intent`` on ``observation``.

    The action's ``comment`` is the element's name. Raises ``LookupError``, naming what is on the
    page, when the element is not there.
    """
    if intent.name is None:
        return Action(kind=intent.kind, argument=intent.argument, note=intent.note)
    element = observation.find(intent.name, intent.role, intent.nth)
    return Action(intent.kind, intent.argument, element.element_id, comment=element.name, note=intent.note)


def read(seen: Observation, pattern: str, *, lacking: str | None = None) -> str:
    """Return the one group of ``pattern`` in the page's text, else ``lacking``, else raise ``LookupError``."""
    found = re.search(pattern, seen.page_text)
    if found is None and lacking is None:
        raise LookupError(f"expected {pattern!r} on {seen.url}, found {seen.page_text[:300]!r}")
    return found[1] if found else str(lacking)
