"""The skills of the encyclopedia's experts, and what they read in its articles."""

from __future__ import annotations

import re

from records.environment import Observation
from sites.checks import both, shows
from sites.experts import Actions
from sites.skills import click, search, skill
from sites.wiki.checks import at, category_path
from sites.wiki.data import slug

YEARS = r"\b\d{4}\b"
"""What a careless person might answer: a year that stands on the page."""
_MOST_PAGES = 10


@skill(lambda title: at("/*"))
def look_up(title: str) -> Actions:
    """Search for a title, which opens its article where there is one of that name."""
    return (yield from search(title))


@skill(lambda title: both(at(f"/wiki/{slug(title)}"), shows(f"{title} is on your reading list.")))
def read_later(title: str) -> Actions:
    """Put an article on the reading list."""
    yield from look_up(title)
    return (yield from click("Read later", "button"))


@skill(lambda name, rivals=None: at(category_path(name)))
def open_category(name: str, rivals: str | None = None) -> Actions:
    """Open a category from the list of all."""
    seen = yield from click("Categories", "link")
    for _ in range(_MOST_PAGES):
        if any(element.name == name and element.role == "link" for element in seen.elements):
            return (yield from click(name, "link", rivals))
        seen = yield from click("Next", "link")
    raise LookupError(f"expected {name} in the list, found it on none of {_MOST_PAGES} pages up to {seen.url}")


@skill(lambda: both(at("/wiki/*/history*"), shows("First version")))
def first_version() -> Actions:
    """On an article's page: open its history and turn to the page of its first version."""
    seen = yield from click("History", "link")
    while any(element.name == "Next" for element in seen.elements):
        seen = yield from click("Next", "link")
    return seen


def states(seen: Observation, label: str) -> bool:
    """Whether the article's box has this fact."""
    return re.search(rf"^{label}(?: \| |$)", seen.text, re.MULTILINE) is not None


def fact(seen: Observation, label: str) -> str:
    """Return what the article's box says under this label, as text or as a link."""
    found = re.search(rf"^{label}(?: \| (.+)|\nlink (.+) \d+)$", seen.text, re.MULTILINE)
    if found is None:
        raise LookupError(f"expected {label} on {seen.url}; is this an article that says so?")
    return found[1] or found[2]


def members(seen: Observation) -> list[str]:
    """Return the titles that a category's page lists: the links after the search button."""
    lines = iter(seen.elements)
    next(element for element in lines if element.role == "button" and element.name == "Search")
    return [element.name for element in lines if element.role == "link" and element.name not in ("Next", "Previous")]


def first_editor(seen: Observation) -> str:
    """Return who wrote the first version, as a history's last page says."""
    found = re.findall(r"\| (\w+) \| First version", seen.text)
    if not found:
        raise LookupError(f"expected the first version on {seen.url}")
    return str(found[0])
