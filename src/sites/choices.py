"""Choices on the way of an expert, and what an inattentive person might have taken instead.

Reads intents and observations only. Invariant: what is taken instead is on the page.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

from records.environment import Element, Observation
from sites.experts import Intent


def is_option(intent: Intent) -> bool:
    """Whether the page works, if wrongly, when this choice is left out."""
    return intent.kind in ("select", "type") or intent.role in ("radio", "checkbox")


def rival_of(intent: Intent, seen: Observation, rng: random.Random) -> Intent | None:
    """Return ``intent`` with another item, option, number or answer, or None where there is no other."""
    others = rivals_of(intent, seen)
    if intent.kind in ("exit", "click"):
        others.sort(key=lambda other: (other.name or "", other.argument or ""))
    return rng.choice(others) if others else None


def rivals_of(intent: Intent, seen: Observation) -> list[Intent]:
    """Return ``intent`` with each other item, option, number or answer, in the order of the page."""
    assert intent.rivals is not None
    if intent.kind == "exit":
        answers = dict.fromkeys(re.findall(intent.rivals, seen.page_text))
        return [Intent("exit", argument=answer) for answer in answers if answer != intent.argument]
    element = element_of(intent, seen)
    if element is None:
        return []
    if intent.kind == "click":
        names = dict.fromkeys(e.name for e in seen.elements if e.role == element.role and e.name != element.name)
        others = [name for name in names if re.fullmatch(intent.rivals, name)]
        return [replace(intent, name=name, role=element.role, nth=0, rivals=None) for name in others]
    if intent.kind == "select":
        others = [o for o in element.options if o != intent.argument and re.fullmatch(intent.rivals, o)]
    else:
        others = _other_numbers(intent.argument or "")
    return [replace(intent, argument=other, rivals=None) for other in others]


def _other_numbers(number: str) -> list[str]:
    """Return numbers of as many digits that someone might type instead; none for a text."""
    if not number.isdigit():
        return []
    digits = [str(d) for d in range(1, 10) if str(d) != number[-1]]
    return [number[:-1] + digit for digit in digits]


def is_there(intent: Intent, seen: Observation) -> bool:
    """Whether the page has what the intent names."""
    return intent.name is None or element_of(intent, seen) is not None


def element_of(intent: Intent, seen: Observation) -> Element | None:
    """Return the element that the intent names, None where the page lacks it."""
    try:
        return seen.find(intent.name or "", intent.role, intent.nth)
    except LookupError:
        return None
