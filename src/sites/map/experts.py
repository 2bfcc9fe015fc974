"""Scripted experts of the map's tasks, composed of a few skills that many tasks share.

Owns what a careful person would do, as generators of intents over observations. Experts read pages and
the task's parameters, never the site's state. ``rivals`` names what a careless person might have
taken instead, so that imperfect demonstrations stay plausible.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from records.environment import Observation
from records.episodes import Task
from sites.old_form import Expert, Intent, Skill

PLACE = "[A-Z][a-z]+ [A-Z][a-z]+"
"""What the name of a place looks like."""
LIST = "(?!Home|Directions|My )[A-Z][a-z]+( [a-z]+)?"
"""What the name of a list looks like."""
ANY = ".*"
NOT_KNOWN = "not known"
"""What a place's page says where a fact is missing."""
CHOICES = "(?!choose).*"
"""Options of a select other than its empty one."""


def click(name: str, role: str | None = None, rivals: str | None = None) -> Skill:
    """Click the element of this name."""
    return (yield Intent("click", name, role, rivals=rivals))


def write(name: str, text: str, rivals: str | None = None) -> Skill:
    """Type into the field of this name."""
    return (yield Intent("type", name, "textbox", argument=text, rivals=rivals))


def choose(name: str, option: str, rivals: str | None = CHOICES) -> Skill:
    """Choose an option of a select."""
    return (yield Intent("select", name, "select", argument=option, rivals=rivals))


def finish(message: str = "done", rivals: str | None = None) -> Skill:
    """End the episode, with an answer where one was asked for."""
    return (yield Intent("exit", argument=message, rivals=rivals))


def search_for(label: str) -> Skill:
    """Search for a place by name and town."""
    return (yield Intent("search", "Search", "searchbox", argument=label.replace(",", "")))


def open_place(label: str, rivals: str | None = PLACE) -> Skill:
    """Search for a place and open it; places of the same name in other towns may stand above it."""
    seen = yield from search_for(label)
    name, town = label.split(", ")
    return (yield Intent("click", name, "link", position(seen, name, town), rivals=rivals))


def position(seen: Observation, name: str, town: str) -> int:
    """Return which of the results of this name lies in this town, counted from 0."""
    towns = re.findall(rf"link {re.escape(name)} .*\n.*? \| (\w+) \|", seen.text)
    if town not in towns:
        raise LookupError(f"expected {name} in {town} among the results, found it in {towns} on {seen.url}")
    return towns.index(town)


def fact(seen: Observation, label: str) -> str:
    """Return what a place's page says about it under this label."""
    found = re.search(rf"^{label}\W+(.*)$", seen.text, re.MULTILINE)
    if found is None:
        raise LookupError(f"expected {label} on {seen.url}; is this a place's page?")
    return found[1]


def show_nearby(kind: str, distance: str = "", rivals: str | None = ANY) -> Skill:
    """On a place's page: list the places of a kind around it."""
    yield from click("Nearby", "link")
    yield from choose("Kind", kind, rivals)
    if distance:
        yield from choose("Within", distance, rivals)
    return (yield from click("Show", "button"))


def found_count(seen: Observation) -> str:
    """Return how many places a nearby search found."""
    found = re.search(r"(\d+) found", seen.text)
    if found is None:
        raise LookupError(f"expected a number of places found on {seen.url}")
    return found[1]


def nearest(seen: Observation) -> str:
    """Return the name of the first place that a nearby search found; the page's heading links to its centre."""
    names = [e.name for e in seen.elements if e.role == "link" and re.fullmatch(PLACE, e.name)]
    if len(names) < 2:
        raise LookupError(f"expected places on {seen.url}, found none")
    return names[1]


def open_nearest(kind: str) -> Skill:
    """On a place's page: open the nearest place of a kind."""
    seen = yield from show_nearby(kind)
    return (yield from click(nearest(seen), "link", PLACE))


def save_to(name: str) -> Skill:
    """On a place's page: put it into a list."""
    yield from choose("List", name)
    return (yield from click("Save", "button"))


def save_place(label: str, name: str) -> Skill:
    """Find a place and put it into a list."""
    yield from open_place(label)
    return (yield from save_to(name))


def note(label: str, text: str) -> Skill:
    """Find a place and write a note on it."""
    yield from open_place(label)
    return (yield from write_note(text))


def write_note(text: str) -> Skill:
    """On a place's page: write a note."""
    yield from write("Note", text)
    return (yield from click("Save note", "button"))


def report(label: str, problem: str, details: str) -> Skill:
    """Find a place and report an error about it."""
    yield from open_place(label)
    yield from click("Report an error", "link")
    yield from choose("Problem", problem)
    yield from write("Details", details)
    return (yield from click("Send", "button"))


def make_list(name: str) -> Skill:
    """Make a list."""
    yield from click("My lists", "link")
    yield from write("New list", name)
    return (yield from click("Make list", "button"))


def open_list(name: str) -> Skill:
    """Open one of the lists."""
    yield from click("My lists", "link")
    return (yield from click(name, "link", LIST))


def remove(seen: Observation, label: str) -> Skill:
    """On a list's page: take a place out."""
    name = label.split(", ")[0]
    names = [e.name for e in seen.elements if e.role == "link" and re.fullmatch(PLACE, e.name)]
    if name not in names:
        raise LookupError(f"expected {name} in the list, found {names} on {seen.url}")
    return (yield Intent("click", "Remove", "button", names.index(name)))


def ask_route(how: str, *labels: str, rivals: str | None = CHOICES) -> Skill:
    """Ask for a route over places, the stops between the first and the last."""
    start, *stops, end = labels
    yield from click("Directions", "link")
    for _ in stops:
        yield from click("Add stop", "button")
    yield from write("From", start)
    for number, stop in enumerate(stops, 1):
        yield from write(f"Stop {number}", stop)
    yield from write("To", end)
    yield from choose("Travel", how, rivals)
    return (yield from click("Show route", "button"))


def ask_other_end(label: str) -> Skill:
    """On a route's page: ask for the route to another place."""
    yield from write("To", label)
    return (yield from click("Show route", "button"))


def minutes(seen: Observation) -> int:
    """Return how long the route or tour of this page takes."""
    found = re.search(r"(\d+) min in all", seen.text)
    if found is None:
        raise LookupError(f"expected the time of a route on {seen.url}")
    return int(found[1])


def plan_tour(name: str, how: str) -> Skill:
    """Plan the shortest tour over a list's places."""
    yield from open_list(name)
    yield from click("Plan a tour", "link")
    yield from choose("Travel", how)
    yield from choose("Order", "Shortest")
    return (yield from click("Show tour", "button"))


def script(*steps: Callable[[Task], Skill]) -> Callable[[Task], Expert]:
    """Return the expert that carries out these steps in turn and then ends the episode."""

    def expert(task: Task) -> Expert:
        for step in steps:
            yield from step(task)
        yield from finish()

    return expert
