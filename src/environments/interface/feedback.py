"""What the agent is told when an action did not do what it asks for, in one place for both drivers.

Owns the sentences, and which of them say that the action was not carried out. Drivers (the in-page script,
``html_page``) report a short code and maybe a detail; ``line`` turns it into what the agent reads, so both drivers
say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from records.environment import Action, Element

_SENTENCES = {
    "unknown": "There is no element {id} on this page.",
    "gone": "Element {id} ({element}) is no longer on the page.",
    "disabled": "Element {id} ({element}) is disabled.",
    "read_only": "Element {id} ({element}) cannot be changed.",
    "not_text": "Nothing can be typed into element {id} ({element}).",
    "not_select": "Element {id} ({element}) is not a list to select from.",
    "no_option": "Element {id} ({element}) has no option {argument!r}.",
    "not_accepted": "Element {id} ({element}) does not accept {argument!r}.",
    "file": "Element {id} ({element}) takes files, which cannot be given here.",
    "file_chooser": "The page asked for a file, which cannot be given here.",
    "covered": "Element {id} ({element}) is covered by {detail}.",
    "no_target": "There is no element {argument!r} on the page to drag to.",
    "nothing": "Nothing on the page changed.",
    "no_focus": "Enter was pressed, but nothing on the page has the focus.",
    "no_key": "There is no key {argument!r}; keys are such as Escape, Tab, ArrowDown, a letter, or Control+A.",
    "no_submit": "Enter did nothing here: the field belongs to no form that it can send.",
    "invalid": "The form was not sent: {detail} is not filled in as it must be.",
    "no_back": "There is no earlier page to go back to.",
    "no_forward": "There is no later page to go forward to.",
    "resubmit": "That page answered a form that was sent; it cannot be shown again without sending the form once more.",
    "no_tab": "There is no tab {argument!r}.",
    "all_shown": "The whole page is shown already; scrolling changes nothing.",
    "scroll_end": "The page cannot be scrolled further in that direction.",
    "refused": "The address {detail} lies outside this task's sites and was not opened.",
    "too_many_tabs": "Too many tabs are open; the new one was closed.",
    "download": "The file that the page offered was not downloaded.",
    "slow": "The page took too long to load and was stopped; what is there is shown.",
    "large": "The page is too large to be shown whole; some of it is missing.",
    "dialog": "The page showed a message and it was accepted: {detail}",
}

CODES = frozenset(_SENTENCES)
"""Every code that a driver may report."""

REMARKS = frozenset({"nothing", "refused", "file_chooser", "too_many_tabs", "download", "slow", "large", "dialog"})
"""Codes of what came of an action that was carried out, or of the page itself; all others say that it was not."""


class Line(NamedTuple):
    """What the agent is told: the text, and whether it says that the action was not carried out."""

    text: str
    refusal: bool


def line(code: str, action: Action | None = None, element: Element | None = None, detail: str = "") -> Line:
    """Return what the agent is told for ``code``; see ``sentence``."""
    return Line(sentence(code, action, element, detail), code not in REMARKS)


def sentence(code: str, action: Action | None = None, element: Element | None = None, detail: str = "") -> str:
    """Return the line for ``code``; fields that do not apply stay empty."""
    named = f"{element.role} {element.name}".strip() if element else ""
    identifier = action.element_id if action else None
    argument = (action.argument or "") if action else ""
    return _SENTENCES[code].format(
        id=identifier, element=named, argument=argument[:60], detail=" ".join(detail.split())[:160]
    )


def told(lines: Sequence[Line]) -> tuple[str | None, bool]:
    """Return lines as one text, None when there are none, and whether one of them is a refusal."""
    return joined([one.text for one in lines]), any(one.refusal for one in lines)


def joined(texts: Sequence[str]) -> str | None:
    """Join texts into one; None when there are none."""
    return " ".join(texts) or None
