"""The road graph: junctions, pieces of road, who may use them, and the quickest way.

Owns ``Road``, ``RoadGraph`` and Dijkstra's search over them (E. W. Dijkstra, "A note on two problems in
connexion with graphs", 1959). Pure and immutable. Invariants: lengths are whole metres; a way is the
quickest for its mode of travel, and of equally quick ways always the same one is found.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """How one travels."""

    CAR = "car"
    BIKE = "bike"
    FOOT = "foot"


SPEEDS_KMH = {Mode.BIKE: 15, Mode.FOOT: 5}
"""Speeds on every road; those of cars are the road's own."""
Point = tuple[float, float]
"""Metres to the east and to the north of the region's south-west corner."""


@dataclass(frozen=True, slots=True)
class Road:
    """A piece of road from one node to another.

    ``car_kmh`` is 0 where cars may not go; ``one_way`` binds cars only; ``paths`` says whether people
    on foot or by bike may use it (not on a motorway).
    """

    start: int
    end: int
    name: str
    metres: int
    car_kmh: int = 30
    one_way: bool = False
    paths: bool = True

    def kmh(self, mode: Mode, *, backwards: bool) -> int:
        """Return the speed of ``mode`` in this direction, 0 where it is not allowed."""
        if mode is Mode.CAR:
            return 0 if backwards and self.one_way else self.car_kmh
        return SPEEDS_KMH[mode] if self.paths else 0


@dataclass(frozen=True, slots=True)
class Stretch:
    """One road as it is travelled, from ``start`` to ``end``."""

    start: int
    end: int
    name: str
    metres: int
    seconds: float


class RoadGraph:
    """All roads between nodes, which are numbered from 0; ``points[i]`` is where node i lies."""

    def __init__(self, points: Iterable[Point], roads: Iterable[Road]) -> None:
        self.points: tuple[Point, ...] = tuple(points)
        self.roads: tuple[Road, ...] = tuple(roads)
        self._out: dict[Mode, list[list[Stretch]]] = {}

    def quickest(self, start: int, end: int, mode: Mode) -> tuple[Stretch, ...] | None:
        """Return the quickest way in order of travel, () from a node to itself, None where there is none."""
        arrived: dict[int, Stretch | None] = {}
        turn = itertools.count()
        waiting: list[tuple[float, int, int, Stretch | None]] = [(0.0, start, next(turn), None)]
        out = self._out_of(mode)
        while waiting and end not in arrived:
            seconds, node, _, last = heapq.heappop(waiting)
            if node in arrived:
                continue
            arrived[node] = last
            for stretch in out[node]:
                if stretch.end not in arrived:
                    heapq.heappush(waiting, (seconds + stretch.seconds, stretch.end, next(turn), stretch))
        return _traced(arrived, start, end) if end in arrived else None

    def reachable(self, start: int, mode: Mode) -> frozenset[int]:
        """Return all nodes that one can get to from ``start``."""
        out = self._out_of(mode)
        return _found_from(start, lambda node: [stretch.end for stretch in out[node]])

    def connected(self, nodes: Iterable[int], mode: Mode) -> bool:
        """Whether one can get from each of the nodes to each other: from one to all, and from all to that one."""
        wanted = set(nodes)
        if not wanted:
            return True
        one = min(wanted)
        came_from: list[list[int]] = [[] for _ in self.points]
        for stretch in itertools.chain.from_iterable(self._out_of(mode)):
            came_from[stretch.end].append(stretch.start)
        return wanted <= self.reachable(one, mode) and wanted <= _found_from(one, came_from.__getitem__)

    def _out_of(self, mode: Mode) -> list[list[Stretch]]:
        """Return what leads away from each node, put together when it is first asked for."""
        if mode not in self._out:
            out: list[list[Stretch]] = [[] for _ in self.points]
            for road in self.roads:
                for start, end, backwards in ((road.start, road.end, False), (road.end, road.start, True)):
                    if kmh := road.kmh(mode, backwards=backwards):
                        out[start].append(Stretch(start, end, road.name, road.metres, road.metres * 3.6 / kmh))
            self._out[mode] = out
        return self._out[mode]


def _found_from(start: int, next_to: Callable[[int], Iterable[int]]) -> frozenset[int]:
    found, waiting = {start}, [start]
    while waiting:
        for node in next_to(waiting.pop()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return frozenset(found)


def _traced(arrived: dict[int, Stretch | None], start: int, end: int) -> tuple[Stretch, ...]:
    way: list[Stretch] = []
    node = end
    while node != start:
        stretch = arrived[node]
        assert stretch is not None
        way.append(stretch)
        node = stretch.start
    return tuple(reversed(way))
