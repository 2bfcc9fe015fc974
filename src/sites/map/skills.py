"""The skills of the map's experts, and what they read on its pages."""

from __future__ import annotations

import re

from records.environment import Observation
from sites.checks import both, either, shows
from sites.experts import Actions, Intent, read
from sites.map.checks import at, list_path, tour_path
from sites.skills import ANY, choose, click, put, search, skill

PLACE = "[A-Z][a-z]+ [A-Z][a-z]+"
"""What the name of a place looks like."""
LIST = "(?!Home|Directions|My )[A-Z][a-z]+( [a-z]+)?"
"""What the name of a list looks like."""
NOT_KNOWN = "not known"
"""What a place's page says where a fact is missing."""
CHOICES = "(?!choose).*"
"""Options of a select other than its empty one."""
_ASKED = either(at("/route/*"), at("/directions?*"))
"""A route, or the question which of several places is meant, or that there is no way."""


def search_for(label: str) -> Actions:
    """Search for a place by name and town."""
    return (yield from search(label.replace(",", "")))


@skill(lambda label, rivals=PLACE: at("/place/*"))
def open_place(label: str, rivals: str | None = PLACE) -> Actions:
    """Search for a place and open it; places of the same name in other towns may stand above it."""
    seen = yield from search_for(label)
    name, town = label.split(", ")
    towns = _towns(seen, name)
    if town not in towns:
        raise LookupError(f"expected {name} in {town} among the results, found it in {towns} on {seen.url}")
    return (yield Intent("click", name, "link", towns.index(town), rivals=rivals))


def listed(seen: Observation, label: str) -> bool:
    """Whether a place of this name and town is among the results of a search."""
    name, town = label.split(", ")
    return town in _towns(seen, name)


def _towns(seen: Observation, name: str) -> list[str]:
    """Return the towns of the results of this name, in their order."""
    return re.findall(rf"link {re.escape(name)} .*\n.*? \| (\w+) \|", seen.text)


def fact(seen: Observation, label: str) -> str:
    """Return what a place's page says about it under this label."""
    found = re.search(rf"^{label}\W+(.*)$", seen.text, re.MULTILINE)
    if found is None:
        raise LookupError(f"expected {label} on {seen.url}; is this a place's page?")
    return found[1]


@skill(lambda kind, distance="", rivals=ANY: at("/place/*/nearby?*"))
def show_nearby(kind: str, distance: str = "", rivals: str | None = ANY) -> Actions:
    """On a place's page: list the places of a kind around it."""
    yield from click("Nearby", "link")
    yield from choose("Kind", kind, rivals)
    if distance:
        yield from choose("Within", distance, rivals)
    return (yield from click("Show", "button"))


def found_count(seen: Observation) -> str:
    """Return how many places a nearby search found."""
    return read(seen, r"(\d+) found")


def nearest(seen: Observation) -> str:
    """Return the name of the first place that a nearby search found; the page's heading links to its centre."""
    names = _place_links(seen)
    if len(names) < 2:
        raise LookupError(f"expected places on {seen.url}, found none")
    return names[1]


def _place_links(seen: Observation) -> list[str]:
    return [e.name for e in seen.elements if e.role == "link" and re.fullmatch(PLACE, e.name)]


@skill(lambda kind: at("/place/*"))
def open_nearest(kind: str) -> Actions:
    """On a place's page: open the nearest place of a kind."""
    seen = yield from show_nearby(kind)
    return (yield from click(nearest(seen), "link", PLACE))


@skill(lambda name: both(at("/place/*"), shows(f"Saved to {name}.")))
def save_to(name: str) -> Actions:
    """On a place's page: put it into a list."""
    yield from choose("List", name, CHOICES)
    return (yield from click("Save", "button"))


@skill(lambda label, name: save_to.reached(name))
def save_place(label: str, name: str) -> Actions:
    """Find a place and put it into a list."""
    yield from open_place(label)
    return (yield from save_to(name))


@skill(lambda text: both(at("/place/*"), shows("Your note was saved.", text)))
def write_note(text: str) -> Actions:
    """On a place's page: write a note."""
    yield from put("Note", text)
    return (yield from click("Save note", "button"))


@skill(lambda label, text: write_note.reached(text))
def note(label: str, text: str) -> Actions:
    """Find a place and write a note on it."""
    yield from open_place(label)
    return (yield from write_note(text))


@skill(
    lambda label, problem, details: both(
        at("/reports*"), shows("Thank you for your report.", label, f"{problem}: {details}")
    )
)
def report(label: str, problem: str, details: str) -> Actions:
    """Find a place and report an error about it."""
    yield from open_place(label)
    yield from click("Report an error", "link")
    yield from choose("Problem", problem, CHOICES)
    yield from put("Details", details)
    return (yield from click("Send", "button"))


@skill(lambda user, password: shows("You are logged in."))
def log_in(user: str, password: str) -> Actions:
    """Log in."""
    yield from click("Log in", "link")
    yield from put("User name", user)
    yield from put("Password", password)
    return (yield from click("Log in", "button"))


@skill(lambda name: both(at("/lists"), shows(f"The list {name} was made.")))
def add_list(name: str) -> Actions:
    """On the page of all lists: make one."""
    yield from put("New list", name)
    return (yield from click("Make list", "button"))


@skill(lambda name: shows(f"The list {name} was made."))
def make_list(name: str) -> Actions:
    """Make a list."""
    yield from click("My lists", "link")
    return (yield from add_list(name))


@skill(lambda name: at(f"{list_path(name)}*"))
def open_list(name: str) -> Actions:
    """Open one of the lists."""
    yield from click("My lists", "link")
    return (yield from click(name, "link", LIST))


@skill(lambda name, other: at(list_path(other)))
def rename_list(name: str, other: str) -> Actions:
    """Give a list another name."""
    yield from open_list(name)
    yield from put("Name", other)
    return (yield from click("Rename", "button"))


@skill(lambda name: both(at("/lists"), shows(f"The list {name} was deleted.")))
def delete_list(name: str) -> Actions:
    """Delete a list."""
    yield from open_list(name)
    yield from click("Delete list", "link")
    return (yield from click("Yes, delete", "button"))


@skill(lambda name, *labels: shows(f"{labels[-1].split(', ')[0]} was removed."))
def remove(name: str, *labels: str) -> Actions:
    """Open a list and take places out of it."""
    seen = yield from open_list(name)
    for label in labels:
        place, names = label.split(", ")[0], _place_links(seen)
        if place not in names:
            raise LookupError(f"expected {place} in the list, found {names} on {seen.url}")
        seen = yield Intent("click", "Remove", "button", names.index(place))
    return seen


@skill(lambda how, *labels, rivals=CHOICES: _ASKED)
def ask_route(how: str, *labels: str, rivals: str | None = CHOICES) -> Actions:
    """Ask for a route over places, the stops between the first and the last."""
    start, *stops, end = labels
    yield from click("Directions", "link")
    for _ in stops:
        yield from click("Add stop", "button")
    yield from put("From", start)
    for number, stop in enumerate(stops, 1):
        yield from put(f"Stop {number}", stop)
    yield from put("To", end)
    yield from choose("Travel", how, rivals)
    return (yield from click("Show route", "button"))


@skill(lambda label: _ASKED)
def ask_other_end(label: str) -> Actions:
    """On a route's page: ask for the route to another place."""
    yield from put("To", label)
    return (yield from click("Show route", "button"))


def minutes(seen: Observation) -> int:
    """Return how long the route or tour of this page takes."""
    return int(read(seen, r"(\d+) min in all"))


@skill(lambda name, how: at(tour_path(name, how)))
def plan_tour(name: str, how: str) -> Actions:
    """Plan the shortest tour over a list's places."""
    yield from open_list(name)
    yield from click("Plan a tour", "link")
    yield from choose("Travel", how, CHOICES)
    yield from choose("Order", "Shortest", CHOICES)
    return (yield from click("Show tour", "button"))
