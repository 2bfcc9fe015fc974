"""Base data from a seed: places on the roads, and what the usual user has saved.

Owns ``build``. A place becomes a node of its own, so that directions lead to its door; the road that it
stands at is cut there. Invariants: no two doors share a spot; on the mainland cars may go to every door.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from sites.kept import SEEDS_KEPT
from sites.map import words
from sites.map.data import MapData, Place
from sites.map.roads import Point, Road, RoadGraph
from sites.map.streets import Network, lay_out

LISTS = ("Weekend", "Holiday", "Friends", "Work", "Food", "Family")
"""Names of the lists that the usual user has."""
_PLACES_PER_LIST = 4
_WITHOUT_PHONE = 0.25
_SHUT_AT_WEEKENDS = 0.3
_SPOTS = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True)
class Door:
    """Where a place stands: on which road (its index), how far along (share of its length), and its house number."""

    road: int
    spot: float
    number: int


@lru_cache(maxsize=SEEDS_KEPT)
def build(seed: int) -> MapData:
    """Generate the region of this seed: 5 towns and some 150 places."""
    rng = random.Random(f"map/{seed}")
    network = lay_out(rng)
    postcodes, phones = rng.sample(range(10_000, 100_000), 400), rng.sample(range(1000, 10_000), 400)
    places: dict[int, Place] = {}
    doors: dict[int, Door] = {}
    for town in network.towns:
        free = iter(_doors(network, town, rng))
        for kind, name in _names(town, rng):
            door, number, node = next(free), len(places) + 1, len(network.points)
            doors[node] = door
            network.points.append(_point(network, door))
            weekdays, weekend = _hours(kind, rng)
            places[number] = Place(
                place_id=number,
                name=name,
                kind=kind,
                town=town,
                street=network.roads[door.road].name,
                number=door.number,
                postcode=str(postcodes[number]),
                phone="" if rng.random() < _WITHOUT_PHONE else f"0{rng.randint(2, 9)}0 {phones[number]}",
                weekdays=weekdays,
                weekend=weekend,
                node=node,
                point=network.points[node],
            )
    graph = RoadGraph(network.points, _cut(network.roads, doors))
    return MapData(network.towns, graph, places, _lists(places, rng))


def _names(town: str, rng: random.Random) -> list[tuple[str, str]]:
    """Return kind and name of each place of a town."""
    named = []
    for kind, (many, on_island) in words.KINDS.items():
        count = on_island if town == words.ISLAND else many
        if kind in words.FEW and town not in words.FEW[kind]:
            continue
        if kind in words.CIVIC:
            named += [(kind, f"{town} {kind.capitalize()}")] * count
        else:
            named += [(kind, f"{prefix} {kind.capitalize()}") for prefix in rng.sample(words.PREFIXES, count)]
    return named


def _doors(network: Network, town: str, rng: random.Random) -> list[Door]:
    """Return all spots of a town at which a place may stand, in random order; houses count 20 to a block."""
    members = set(network.towns[town])
    blocks: Counter[str] = Counter()
    doors = []
    for index, road in enumerate(network.roads):
        if {road.start, road.end} <= members:
            block = blocks[road.name]
            blocks[road.name] += 1
            if road.car_kmh or town == words.ISLAND:
                doors += [Door(index, spot, 20 * block + round(20 * spot)) for spot in _SPOTS]
    rng.shuffle(doors)
    return doors


def _point(network: Network, door: Door) -> Point:
    road = network.roads[door.road]
    (x, y), (to_x, to_y) = network.points[road.start], network.points[road.end]
    return (x + (to_x - x) * door.spot, y + (to_y - y) * door.spot)


def _cut(roads: list[Road], doors: Mapping[int, Door]) -> Iterator[Road]:
    """Cut each road at the doors that stand at it; the pieces are as long as the road together."""
    along: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for node, door in doors.items():
        along[door.road].append((door.spot, node))
    for index, road in enumerate(roads):
        start, gone = road.start, 0
        for spot, node in sorted(along[index]):
            metres = round(road.metres * spot) - gone
            yield replace(road, start=start, end=node, metres=metres)
            start, gone = node, gone + metres
        yield replace(road, start=start, metres=road.metres - gone)


def _hours(kind: str, rng: random.Random) -> tuple[str, str]:
    """Return hours on weekdays and at the weekend."""
    if kind in words.ALWAYS_OPEN:
        return "0:00-24:00", "0:00-24:00"
    weekdays = f"{rng.randint(7, 10)}:00-{rng.randint(16, 19)}:00"
    shut = rng.random() < _SHUT_AT_WEEKENDS
    return weekdays, "closed" if shut else f"{rng.randint(11, 13)}:00-{rng.randint(20, 23)}:00"


def _lists(places: dict[int, Place], rng: random.Random) -> dict[str, tuple[int, ...]]:
    """Each list has places of one town, so that tours stay short, and none that another list has."""
    left = {town: rng.sample([p.place_id for p in places.values() if p.town == town], 12) for town in words.TOWNS}
    lists = {}
    for number, name in enumerate(LISTS):
        town = words.TOWNS[number % len(words.TOWNS)]
        lists[name] = tuple(left[town].pop() for _ in range(_PLACES_PER_LIST))
    return lists
