"""One session's view of the map: its own lists, notes and error reports over the shared base data.

Owns every change that a visitor can make and the rules for it. Invariants: the base data is never written
to; a session sees no other session's changes; a refused change raises ``Refused`` and changes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sites.map.data import MapData, Place
from sites.map.words import PROBLEMS
from sites.site import Refused, State

MAX_LISTS = 12
MAX_PLACES = 7
"""Most places in a list, so that a tour's orders can all be tried."""
MAX_NAME_CHARS, MAX_NOTE_CHARS, MAX_REPORTS = 30, 200, 50


@dataclass(frozen=True, slots=True)
class Report:
    """An error that the user reported."""

    place: Place
    problem: str
    details: str


def slug(name: str) -> str:
    """Return what a list is called in addresses."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


class MapState(State):
    """The overlay of one session; ``me`` is the logged-in user's name or None."""

    def __init__(self, data: MapData, me: str | None) -> None:
        super().__init__()
        self.data = data
        self.me = me
        self.lists: dict[str, list[int]] = {name: list(places) for name, places in data.lists.items()}
        self.notes: dict[int, str] = {}
        self.reports: list[Report] = []

    def list_named(self, wanted: str) -> str | None:
        """Return the name of the list that an address calls ``wanted``."""
        return next((name for name in self.lists if slug(name) == wanted), None)

    def places(self, name: str) -> list[Place]:
        """Return a list's places in the order in which they were saved."""
        return [self.data.places[number] for number in self.lists[name]]

    def add_list(self, name: str) -> None:
        """Make an empty list."""
        self._check_name(name)
        if len(self.lists) >= MAX_LISTS:
            raise Refused(f"You can have {MAX_LISTS} lists at most.")
        self.lists[name] = []

    def rename(self, old: str, new: str) -> None:
        """Give a list another name; it keeps its place among the lists."""
        if new != old:
            self._check_name(new, but=old)
        self.lists = {new if name == old else name: places for name, places in self.lists.items()}

    def delete_list(self, name: str) -> None:
        """Delete a list; its places stay on the map."""
        del self.lists[name]

    def save(self, place: Place, name: str) -> None:
        """Put a place at the end of a list."""
        if name not in self.lists:
            raise Refused("Choose a list.")
        if place.place_id in self.lists[name]:
            raise Refused(f"{place.name} is in {name} already.")
        if len(self.lists[name]) >= MAX_PLACES:
            raise Refused(f"{name} is full: a list has {MAX_PLACES} places at most.")
        self.lists[name].append(place.place_id)

    def remove(self, place: Place, name: str) -> None:
        """Take a place out of a list."""
        if place.place_id in self.lists[name]:
            self.lists[name].remove(place.place_id)

    def write_note(self, place: Place, text: str) -> None:
        """Keep a note on a place; an empty one takes it away."""
        if len(text) > MAX_NOTE_CHARS:
            raise Refused(f"A note has {MAX_NOTE_CHARS} letters at most.")
        self.notes[place.place_id] = text

    def report(self, place: Place, problem: str, details: str) -> None:
        """Report an error about a place."""
        if problem not in PROBLEMS:
            raise Refused("Choose what is wrong.")
        if not details:
            raise Refused("Write some details.")
        if len(self.reports) >= MAX_REPORTS:
            raise Refused("Thank you, these are enough reports for today.")
        self.reports.append(Report(place, problem, details))

    def _check_name(self, name: str, but: str = "") -> None:
        if not slug(name):
            raise Refused("Write a name.")
        if len(name) > MAX_NAME_CHARS:
            raise Refused(f"A name has {MAX_NAME_CHARS} letters at most.")
        if slug(name) in {slug(other) for other in self.lists if other != but}:
            raise Refused("You have a list of this name.")
