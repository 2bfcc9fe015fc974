"""Directions: routes over several stops, and what to do at every turn.

Owns ``Route``, ``Leg`` and their wording, and the shortest order of a tour. Pure: reads the base data.
Times are rounded up to whole minutes only where they are shown.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sites.map.data import MapData, Place
from sites.map.roads import Mode, Point, Stretch

PHRASES = {Mode.CAR: "by car", Mode.BIKE: "by bike", Mode.FOOT: "on foot"}
_STRAIGHT_ON, _TURN_ROUND = 40.0, 150.0
"""Angles between streets, degrees, below which one goes straight on and above which one turns round."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One line of the directions; ``metres`` to go after it."""

    text: str
    metres: int


@dataclass(frozen=True)
class Leg:
    """The way between two stops."""

    start: Place
    end: Place
    stretches: tuple[Stretch, ...]

    @property
    def metres(self) -> int:
        """Length, metres."""
        return sum(stretch.metres for stretch in self.stretches)

    @property
    def seconds(self) -> float:
        """Time it takes, seconds."""
        return sum(stretch.seconds for stretch in self.stretches)


@dataclass(frozen=True)
class Route:
    """Legs in order of travel."""

    mode: Mode
    legs: tuple[Leg, ...]

    @property
    def metres(self) -> int:
        """Length, metres."""
        return sum(leg.metres for leg in self.legs)

    @property
    def minutes(self) -> int:
        """Time it takes, minutes, rounded up."""
        return minutes(sum(leg.seconds for leg in self.legs))


def minutes(seconds: float) -> int:
    """Return whole minutes, rounded up, at least one."""
    # The sum of many stretches may end a rounding error above a whole minute.
    return max(1, math.ceil(seconds / 60 - 1e-9))


def distance(metres: int) -> str:
    """Return a length as people read it."""
    return f"{metres} m" if metres < 1000 else f"{metres / 1000:.1f} km"


def find_route(data: MapData, mode: Mode, stops: Sequence[Place]) -> Route | Leg:
    """Return the quickest route over the stops in this order, or the first leg that has no way (it is empty)."""
    legs = []
    for start, end in itertools.pairwise(stops):
        way = _way(data, start.node, end.node, mode)
        if way is None:
            return Leg(start, end, ())
        legs.append(Leg(start, end, way))
    return Route(mode, tuple(legs))


def shortest_tour(data: MapData, mode: Mode, places: Sequence[Place]) -> Route | Leg:
    """Return the quickest route over all places in any order, or a leg that has no way.

    Tries all orders: made for lists of a few places. Of equally quick orders the first in listed order wins.
    """
    legs: dict[tuple[Place, Place], Leg] = {}
    for start, end in itertools.permutations(places, 2):
        way = _way(data, start.node, end.node, mode)
        if way is None:
            return Leg(start, end, ())
        legs[start, end] = Leg(start, end, way)
    seconds = {pair: leg.seconds for pair, leg in legs.items()}
    best = min(itertools.permutations(places), key=lambda order: sum(seconds[p] for p in itertools.pairwise(order)))
    return Route(mode, tuple(legs[pair] for pair in itertools.pairwise(best)))


@lru_cache(maxsize=20_000)
def _way(data: MapData, start: int, end: int, mode: Mode) -> tuple[Stretch, ...] | None:
    """Episodes and the drawing of tasks ask for the same ways over and over."""
    return data.graph.quickest(start, end, mode)


def turns(data: MapData, leg: Leg) -> list[Turn]:
    """Return the directions of a leg, one line for each street, the arrival last."""
    streets = [list(group) for _, group in itertools.groupby(leg.stretches, key=lambda stretch: stretch.name)]
    lines = []
    for index, street in enumerate(streets):
        text = f"Start on {street[0].name}" if index == 0 else _turn(data, streets[index - 1][-1], street[0])
        lines.append(Turn(text, sum(stretch.metres for stretch in street)))
    return [*lines, Turn(f"Arrive at {leg.end.name}", 0)]


def _turn(data: MapData, before: Stretch, after: Stretch) -> str:
    points = data.graph.points
    angle = _angle(points[before.start], points[before.end], points[after.start], points[after.end])
    if abs(angle) < _STRAIGHT_ON:
        return f"Go on along {after.name}"
    if abs(angle) > _TURN_ROUND:
        return f"Turn round into {after.name}"
    return f"Turn {'left' if angle > 0 else 'right'} into {after.name}"


def _angle(a: Point, b: Point, c: Point, d: Point) -> float:
    """Return by how much the direction c-d lies to the left of a-b, degrees from -180 to 180."""
    first, second = math.atan2(b[1] - a[1], b[0] - a[0]), math.atan2(d[1] - c[1], d[0] - c[0])
    return (math.degrees(second - first) + 180) % 360 - 180
