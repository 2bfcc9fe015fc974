"""The map's base data: towns, places, roads and the user's lists, generated from a seed.

Owns the record types and what may be asked of them. Invariants: everything here is immutable and shared
by all sessions (``sites.map.state`` lays one session's changes over it); postcodes are unique; a name
is unique within its town, and often not beyond.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sites.map.roads import Point, RoadGraph

ME = "nora"
"""The user whom a logged-in session belongs to."""
_SOUTH, _WEST = 52.0, 4.0
_METRES_PER_DEGREE_NORTH, _METRES_PER_DEGREE_EAST = 111_000, 68_000


@dataclass(frozen=True, slots=True)
class Place:
    """One place; ``phone`` is "" where nobody knows it, ``weekend`` "closed" or hours as ``weekdays``."""

    place_id: int
    name: str
    kind: str
    town: str
    street: str
    number: int
    postcode: str
    phone: str
    weekdays: str
    weekend: str
    node: int
    point: Point

    @property
    def label(self) -> str:
        """Name and town, which together mean this place only."""
        return f"{self.name}, {self.town}"

    @property
    def address(self) -> str:
        """Street, number, postcode and town on one line."""
        return f"{self.number} {self.street}, {self.postcode} {self.town}"

    @property
    def path(self) -> str:
        """The place's path on the site."""
        return f"/place/{self.place_id}"

    @property
    def coordinates(self) -> str:
        """Latitude and longitude, degrees."""
        east, north = self.point
        return f"{_SOUTH + north / _METRES_PER_DEGREE_NORTH:.4f}, {_WEST + east / _METRES_PER_DEGREE_EAST:.4f}"

    def metres_to(self, other: Place) -> int:
        """Return the straight distance to another place, whole metres."""
        return round(math.dist(self.point, other.point))


@dataclass(frozen=True, eq=False)
class MapData:
    """All base data; ``lists`` are the places that the usual user has saved, by the list's name.

    ``slow_route_s`` is how long a route with stops takes to come up, seconds, as large routes do.
    """

    towns: Mapping[str, tuple[int, ...]]
    graph: RoadGraph
    places: Mapping[int, Place]
    lists: Mapping[str, tuple[int, ...]]
    slow_route_s: float = 0.3

    @cached_property
    def by_label(self) -> Mapping[str, Place]:
        """Places by name and town in lower case."""
        return {place.label.lower(): place for place in self.places.values()}

    def labelled(self, label: str) -> Place:
        """Return the place of this name and town."""
        return self.by_label[label.lower()]

    def named(self, name: str) -> list[Place]:
        """Return the places of this name in all towns, or the one of this name and town."""
        wanted = " ".join(name.lower().split())
        if wanted in self.by_label:
            return [self.by_label[wanted]]
        return [place for place in self.places.values() if place.name.lower() == wanted]

    def find(self, name: str, town: str) -> Place:
        """Return the place of this name in this town; raise ``KeyError`` when there is none."""
        return self.by_label[f"{name}, {town}".lower()]

    def nearby(self, centre: Place, kind: str = "", within_m: float = math.inf) -> list[Place]:
        """Return the other places (of a kind) within a distance of ``centre``, nearest first."""
        found = [
            place
            for place in self.places.values()
            if place != centre and kind in ("", place.kind) and centre.metres_to(place) <= within_m
        ]
        return sorted(found, key=lambda place: (centre.metres_to(place), place.place_id))
