"""Experts' intents turned into actions on what is on the page, and what they read there.

Owns ``resolve`` and ``read`` and re-exports ``Intent``. An expert names what a person would look for; only here
does a name become an element id. Reads observations, never a site's state.
"""

from __future__ import annotations

import re

from records.environment import Action, Observation
from sites.task_template import Expert, Intent

__all__ = ["Expert", "Intent", "read", "resolve"]


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
