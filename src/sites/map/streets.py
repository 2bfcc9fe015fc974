"""Where the roads run: a grid of crooked streets for each town, and the roads between towns.

Owns the making of the road network before places are put on it. Invariants: the graph is planar; within
a town on the mainland cars get from every junction to every other, one-way streets and all; on the
island and on footpaths they may not go.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sites.map import words
from sites.map.roads import Mode, Point, Road, RoadGraph

BLOCK_M = 200
"""Distance of neighbouring junctions before they are moved about, metres."""
_CROOKED_M = 35
_SIZES = {words.ISLAND: 3}
_SIZE = 5
_CORNERS: dict[str, Point] = {
    "Elmford": (1000, 1200),
    "Stonebay": (5200, 600),
    "Northam": (2400, 5000),
    "Riverton": (6600, 4200),
    "Gullholm": (300, 3400),
}
_LINKS = (
    ("Elmford", "Stonebay", "South Road"),
    ("Elmford", "Northam", "North Road"),
    ("Stonebay", "Riverton", "Coast Road"),
)
_MOTORWAY = ("Northam", "Riverton", "Motorway")
_BRIDGE = ("Elmford", "Gullholm", "Long Bridge")


@dataclass
class Network:
    """Roads in the making; ``towns`` maps a town to its junctions."""

    points: list[Point] = field(default_factory=list)
    roads: list[Road] = field(default_factory=list)
    towns: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def length(self, start: int, end: int) -> int:
        """Return how far apart two nodes are, whole metres."""
        return max(1, round(math.dist(self.points[start], self.points[end])))

    def join(self, start: int, end: int, name: str, car_kmh: int, *, paths: bool = True) -> None:
        """Add a straight road."""
        self.roads.append(Road(start, end, name, self.length(start, end), car_kmh, paths=paths))

    def graph(self) -> RoadGraph:
        """Return the network as it is now."""
        return RoadGraph(self.points, self.roads)


def lay_out(rng: random.Random) -> Network:
    """Return the region's junctions and roads."""
    network = Network()
    for town in (*words.TOWNS, words.ISLAND):
        _build_town(network, town, rng)
    for town in words.TOWNS:
        _restrict(network, town, rng)
    for one, other, name in _LINKS:
        network.join(*_closest(network, one, other), name, 80)
    network.join(*_closest(network, *_MOTORWAY[:2]), _MOTORWAY[2], 110, paths=False)
    network.join(*_closest(network, *_BRIDGE[:2]), _BRIDGE[2], 0)
    return network


def _build_town(network: Network, town: str, rng: random.Random) -> None:
    """A square grid whose rows and columns are streets; the middle ones are wide, except on the island."""
    size, (east, north), first = _SIZES.get(town, _SIZE), _CORNERS[town], len(network.points)
    names = rng.sample(words.STREETS, 2 * size)
    for row in range(size):
        for column in range(size):
            crooked = [rng.uniform(-_CROOKED_M, _CROOKED_M) for _ in range(2)]
            network.points.append((east + column * BLOCK_M + crooked[0], north + row * BLOCK_M + crooked[1]))

    def kmh(line: int) -> int:
        return 0 if town == words.ISLAND else 50 if line == size // 2 else 30

    for line in range(size):
        for step in range(size - 1):
            across, up = first + line * size + step, first + step * size + line
            network.join(across, across + 1, names[line], kmh(line))
            network.join(up, up + size, names[size + line], kmh(line))
    network.towns[town] = tuple(range(first, len(network.points)))


def _restrict(network: Network, town: str, rng: random.Random) -> None:
    """Take some blocks away, close some for cars, make some one-way, as long as cars still get everywhere."""
    members = set(network.towns[town])
    blocks = [i for i, road in enumerate(network.roads) if {road.start, road.end} <= members and road.car_kmh == 30]
    rng.shuffle(blocks)
    changes: list[tuple[int, Callable[[Road], Road | None]]] = [
        (2, lambda road: None),
        (4, lambda road: replace(road, car_kmh=0)),
        (6, lambda road: replace(road, one_way=True)),
    ]
    gone: set[int] = set()
    for wanted, change in changes:
        done = 0
        while done < wanted and blocks:
            index = blocks.pop()
            old, new = network.roads[index], change(network.roads[index])
            network.roads[index] = new or replace(old, car_kmh=0, paths=False)
            if network.graph().connected(members, Mode.CAR):
                done += 1
                gone |= {index} if new is None else set()
            else:
                network.roads[index] = old
    network.roads[:] = [road for index, road in enumerate(network.roads) if index not in gone]


def _closest(network: Network, one: str, other: str) -> tuple[int, int]:
    pairs = [(a, b) for a in network.towns[one] for b in network.towns[other]]
    return min(pairs, key=lambda pair: network.length(*pair))
