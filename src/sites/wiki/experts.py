"""Scripted experts of the encyclopedia's tasks, composed of a few skills that many tasks share.

Owns what a careful person would do, as generators of intents over observations. Experts read pages and the
task's parameters, never the site's data.
"""

from __future__ import annotations

import re

from records.environment import Observation
from sites.old_form import Intent, Skill

YEARS = r"\b\d{4}\b"
"""What a careless person might answer: a year that stands on the page."""
_MOST_PAGES = 10


def click(name: str, role: str | None = None, rivals: str | None = None) -> Skill:
    """Click the element of this name."""
    return (yield Intent("click", name, role, rivals=rivals))


def finish(message: str = "done", rivals: str | None = YEARS) -> Skill:
    """End the episode, with an answer where one was asked for."""
    return (yield Intent("exit", argument=message, rivals=rivals))


def look_up(title: str) -> Skill:
    """Search for a title."""
    return (yield Intent("search", "Search", "searchbox", argument=title))


def states(seen: Observation, label: str) -> bool:
    """Whether the article's box has this fact."""
    return re.search(rf"^{label}(?: \| |$)", seen.text, re.MULTILINE) is not None


def fact(seen: Observation, label: str) -> str:
    """Return what the article's box says under this label, as text or as a link."""
    found = re.search(rf"^{label}(?: \| (.+)|\nlink (.+) \d+)$", seen.text, re.MULTILINE)
    if found is None:
        raise LookupError(f"expected {label} on {seen.url}; is this an article that says so?")
    return found[1] or found[2]


def turn_pages_to(seen: Observation, name: str) -> Skill:
    """Turn the pages of a list until a link of this name stands there."""
    for _ in range(_MOST_PAGES):
        if any(element.name == name and element.role == "link" for element in seen.elements):
            return seen
        seen = yield from click("Next", "link")
    raise LookupError(f"expected {name} in the list, found it on none of {_MOST_PAGES} pages up to {seen.url}")


def open_category(name: str, rivals: str | None = None) -> Skill:
    """Open a category from the list of all."""
    seen = yield from click("Categories", "link")
    yield from turn_pages_to(seen, name)
    return (yield from click(name, "link", rivals))


def members(seen: Observation) -> list[str]:
    """Return the titles that a category's page lists: the links after the search button."""
    lines = iter(seen.elements)
    next(element for element in lines if element.role == "button" and element.name == "Search")
    return [element.name for element in lines if element.role == "link" and element.name not in ("Next", "Previous")]


def first_version(seen: Observation) -> Skill:
    """On an article's page: open its history and turn to the page of its first version."""
    seen = yield from click("History", "link")
    while any(element.name == "Next" for element in seen.elements):
        seen = yield from click("Next", "link")
    return seen


def first_editor(seen: Observation) -> str:
    """Return who wrote the first version, as a history's last page says."""
    found = re.findall(r"\| (\w+) \| First version", seen.text)
    if not found:
        raise LookupError(f"expected the first version on {seen.url}")
    return str(found[0])
