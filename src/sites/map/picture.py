"""Pictures of the map for people: roads, places and a route as SVG paths.

Owns the geometry of the drawings only; agents read the text beside them. Coordinates are metres, north up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sites.map.data import MapData, Place
from sites.map.directions import Route
from sites.map.roads import Point

_MARGIN_M = 250
_ABOVE_M = 80
"""How far above its northernmost junction a town's name stands, metres."""
_NAME_HEIGHT = 9
"""Height of a town's name, in widths of the picture's lines."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What an ``<svg>`` shows: its view box, the roads, a route ("" for none), dots, names, and how thick lines are."""

    box: str
    roads: str
    route: str
    dots: tuple[tuple[int, int], ...]
    names: tuple[tuple[int, int, str], ...]
    name_height: int
    width: int
    alternative: str


def around(data: MapData, place: Place) -> Picture:
    """Draw the place's town, with a dot for the place."""
    corners = [data.graph.points[node] for node in data.towns[place.town]]
    return _draw(data, corners, (), [place.point], f"Map of {place.town}")


def of_region(data: MapData) -> Picture:
    """Draw the whole region."""
    return _draw(data, data.graph.points, (), [], "Map of the region")


def of_route(data: MapData, route: Route) -> Picture:
    """Draw a route and its stops."""
    nodes = [stretch.start for leg in route.legs for stretch in leg.stretches] + [route.legs[-1].end.node]
    line = [data.graph.points[node] for node in nodes]
    stops = [route.legs[0].start.point, *(leg.end.point for leg in route.legs)]
    return _draw(data, line, line, stops, "Map of the route")


def _draw(
    data: MapData, shown: Sequence[Point], line: Sequence[Point], dots: Iterable[Point], alternative: str
) -> Picture:
    west, east = round(min(x for x, _ in shown)) - _MARGIN_M, round(max(x for x, _ in shown)) + _MARGIN_M
    width = max(4, (east - west) // 240)
    name_height = _NAME_HEIGHT * width
    south, north = (
        round(min(y for _, y in shown)) - _MARGIN_M,
        round(max(y for _, y in shown)) + _MARGIN_M + name_height,
    )
    route = "M" + "L".join(f"{x:.0f} {-y:.0f}" for x, y in line) if line else ""
    return Picture(
        box=f"{west} {-north} {east - west} {north - south}",
        roads=_roads(data, west, east, south, north),
        route=route,
        dots=tuple((round(x), round(-y)) for x, y in dots),
        names=tuple(
            (round(x), -round(y) - _ABOVE_M, town)
            for town, nodes in data.towns.items()
            for x, y in [max((data.graph.points[node] for node in nodes), key=lambda point: point[1])]
            if west <= x <= east and south <= y + _ABOVE_M <= north
        ),
        name_height=name_height,
        width=width,
        alternative=alternative,
    )


@lru_cache(maxsize=64)
def _roads(data: MapData, west: int, east: int, south: int, north: int) -> str:
    """Return the roads of a box as one path; a road belongs to it when one of its ends does."""
    lines = [(data.graph.points[road.start], data.graph.points[road.end]) for road in data.graph.roads]
    inside = [line for line in lines if any(west <= x <= east and south <= y <= north for x, y in line)]
    return "".join(f"M{a:.0f} {-b:.0f}L{c:.0f} {-d:.0f}" for (a, b), (c, d) in inside)
