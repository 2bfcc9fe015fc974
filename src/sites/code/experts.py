"""Scripted experts of the code host's tasks, composed of a few skills that many tasks share.

Owns what a careful person would do, as generators of intents over observations. Experts read pages and
the task's parameters, never the site's state. ``rivals`` names what a careless person might have
taken instead, so that imperfect demonstrations stay plausible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from records.environment import Element, Observation
from records.episodes import Task
from sites.old_form import Expert, Intent, Skill

PATHS = r"[a-z]+/[a-z]+"
NAMES = r"[a-z]+"
DAYS = r"\d{4}-\d\d-\d\d"
ANY = ".+"
_MENUS = {
    "Members": "Manage",
    "Labels": "Manage",
    "Issues": "Plan",
    "Milestones": "Plan",
    "Merge requests": "Code",
    "Commits": "Code",
    "Branches": "Code",
    "General": "Settings",
    "Repository": "Settings",
}
"""The menu that holds each page of a project."""


def click(name: str, role: str | None = None, nth: int = 0, rivals: str | None = None) -> Skill:
    """Click the element of this name, the ``nth`` of several."""
    return (yield Intent("click", name, role, nth, rivals=rivals))


def write(name: str, text: str) -> Skill:
    """Type into the field of this name."""
    return (yield Intent("type", name, "textbox", argument=text))


def choose(name: str, option: str, rivals: str = ANY) -> Skill:
    """Choose an option of the field of this name; the others are its rivals."""
    return (yield Intent("select", name, "select", argument=option, rivals=rivals))


def finish(message: str = "done", rivals: str | None = None) -> Skill:
    """End the episode, with an answer where one was asked for."""
    return (yield Intent("exit", argument=message, rivals=rivals))


def open_project(path: str) -> Skill:
    """Find a project by its name, which projects of other groups have too, and open it."""
    yield Intent("search", "Search", "searchbox", argument=path)
    return (yield from click(path, "link", rivals=PATHS))


def open_user(name: str) -> Skill:
    """Find a user among those of similar names and open the profile."""
    yield Intent("search", "Search", "searchbox", argument=name)
    return (yield from click(name, "link", rivals=NAMES))


def open_menu(page: str) -> Skill:
    """In a project: open one of its pages by its menu."""
    yield from click(_MENUS[page], "button")
    return (yield from click(page, "link"))


def open_issue(title: str) -> Skill:
    """In a project: find an issue among those about the same thing and open it."""
    yield from open_menu("Issues")
    return (yield from _find("Find issue", title))


def open_request(title: str) -> Skill:
    """In a project: find a merge request among those about the same thing and open it."""
    yield from open_menu("Merge requests")
    return (yield from _find("Find merge request", title))


def _find(field: str, title: str) -> Skill:
    seen = yield Intent("search", field, "searchbox", argument=subject(title))
    return (yield from open_listed(seen, title))


def subject(title: str) -> str:
    """What a title is about: all but its verb."""
    return title.split(" ", 1)[1]


def open_listed(seen: Observation, title: str) -> Skill:
    """Open an item of a filtered list; the others are its rivals."""
    return (yield from click(title, "link", rivals=one_of(link.name for link in listed(seen))))


def listed(seen: Observation) -> list[Element]:
    """Return the links to the items of a filtered list: those after its button, without the page links."""
    elements = list(seen.elements)
    start = next(i for i, e in enumerate(elements) if (e.role, e.name) == ("button", "Filter"))
    return [e for e in elements[start:] if e.role == "link" and e.name not in ("Previous", "Next")]


def one_of(names: Iterable[str]) -> str:
    """Return the regular expression for these names."""
    return "|".join(re.escape(name) for name in sorted(set(names)))


def tick_label(seen: Observation, label: str) -> Skill:
    """On an issue's form: tick a label; those that are not ticked are its rivals."""
    free = [e.name for e in seen.elements if e.role == "checkbox" and not e.value]
    return (yield from click(label, "checkbox", rivals=one_of(free)))


def comment(text: str) -> Skill:
    """On the page of an issue or merge request: write a comment."""
    yield from write("Comment", text)
    return (yield from click("Add comment", "button"))


def open_member(seen: Observation, user: str) -> Skill:
    """On the page of members: open the form of one of them; each has a link of the same name."""
    rows = re.findall(rf"^({NAMES}) \| \w+$", seen.text, re.MULTILINE)
    if user not in rows:
        raise LookupError(f"no member {user} on {seen.url}; there are: {', '.join(rows)}")
    return (yield from click("Edit", "link", rows.index(user)))


def invite(user: str, role: str) -> Skill:
    """On the page of members: invite somebody."""
    yield from click("Invite member", "link")
    yield from write("User name", user)
    yield from choose("Role", role)
    return (yield from click("Invite", "button"))


def add_file(name: str, text: str) -> Skill:
    """On a project's front page: add a file to the branch that is shown."""
    yield from click("New file", "link")
    yield from write("File name", name)
    yield from write("Content", text)
    return (yield from click("Commit changes", "button"))


def number_of(what: str, seen: Observation) -> str:
    """Return the number that a list's page states, such as "Commits: 7"."""
    found = re.search(rf"^{what}: (\d+)$", seen.text, re.MULTILINE)
    if found is None:
        raise LookupError(f"no number of {what} on {seen.url}; is this the list?")
    return found[1]


def fact(name: str, seen: Observation) -> str:
    """Return what a page says after "name: ", and "N/A" where it says "none" or nothing."""
    found = re.search(rf"^{name}: (.+)$", seen.text, re.MULTILINE)
    return found[1] if found and found[1] != "none" else "N/A"


def script(*steps: Callable[[Task], Skill]) -> Callable[[Task], Expert]:
    """Return the expert that carries out these steps in turn and then ends the episode."""

    def expert(task: Task) -> Expert:
        for step in steps:
            yield from step(task)
        yield from finish()

    return expert
