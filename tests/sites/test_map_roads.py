"""The map's roads: shortest ways against brute force, who may go where, turns, tours and places."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sites.map import words
from sites.map.data import MapData
from sites.map.directions import Leg, Route, distance, find_route, minutes, shortest_tour, turns
from sites.map.places import build
from sites.map.roads import Mode, Road, RoadGraph


@pytest.fixture(scope="module")
def data() -> MapData:
    return build(0)


def all_seconds(graph: RoadGraph, mode: Mode) -> np.ndarray:
    """Seconds of the quickest way between all pairs of nodes, by Floyd and Warshall: (N, N), inf for none."""
    times = np.full((len(graph.points),) * 2, np.inf)
    np.fill_diagonal(times, 0.0)
    for road in graph.roads:
        for start, end, backwards in ((road.start, road.end, False), (road.end, road.start, True)):
            if kmh := road.kmh(mode, backwards=backwards):
                times[start, end] = min(times[start, end], road.metres / (kmh / 3.6))
    for node in range(len(graph.points)):
        times = np.minimum(times, times[:, node, None] + times[None, node, :])
    return times


@pytest.mark.parametrize("mode", Mode)
def test_the_quickest_ways_agree_with_brute_force_over_all_pairs(data, mode):
    expected, graph = all_seconds(data.graph, mode), data.graph
    rng = random.Random(1)
    nodes = range(len(graph.points))
    for start, end in [rng.sample(nodes, 2) for _ in range(400)]:
        way = graph.quickest(start, end, mode)
        if way is None:
            assert math.isinf(expected[start, end])
        else:
            assert sum(s.seconds for s in way) == pytest.approx(expected[start, end])


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 50), st.booleans(), st.booleans()), max_size=14
    ),
    st.sampled_from(list(Mode)),
)
@settings(max_examples=150, deadline=None)
def test_on_any_small_graph_ways_are_quickest_and_join_up(edges, mode):
    roads = [Road(a, b, "x", metres, 30 if car else 0, one_way) for a, b, metres, car, one_way in edges]
    graph = RoadGraph([(0.0, 0.0)] * 6, roads)
    expected = all_seconds(graph, mode)
    for start, end in itertools.product(range(6), repeat=2):
        way = graph.quickest(start, end, mode)
        assert (way is None) == math.isinf(expected[start, end])
        if way is not None:
            assert sum(s.seconds for s in way) == pytest.approx(expected[start, end])
            assert [s.end for s in way[:-1]] == [s.start for s in way[1:]]
            assert end == (way[-1].end if way else start)
    for count in range(4):
        nodes = range(count)
        assert graph.connected(nodes, mode) is all(set(nodes) <= graph.reachable(node, mode) for node in nodes)


@pytest.mark.parametrize("seed", range(4))
def test_cars_get_to_all_places_but_those_of_the_island_and_people_to_all(seed):
    data = build(seed)
    doors = {place.node: place.town for place in data.places.values()}
    start = next(node for node, town in doors.items() if town != words.ISLAND)
    assert {doors[n] for n in data.graph.reachable(start, Mode.CAR) & set(doors)} == set(words.TOWNS)
    assert data.graph.connected([n for n, town in doors.items() if town != words.ISLAND][:20], Mode.CAR)
    for mode in (Mode.FOOT, Mode.BIKE):
        assert set(doors) <= data.graph.reachable(start, mode)


@pytest.mark.parametrize("seed", range(4))
def test_no_two_roads_cross(seed):
    graph = build(seed).graph
    for one, other in itertools.combinations(graph.roads, 2):
        if {one.start, one.end} & {other.start, other.end}:
            continue
        a, b, c, d = (np.array(graph.points[n]) for n in (one.start, one.end, other.start, other.end))
        assert not (side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0), (one, other)


def side(a, b, c) -> float:
    (x, y), (u, v) = b - a, c - a
    return float(x * v - y * u)


def test_modes_differ_one_way_streets_and_footpaths_matter(data):
    assert any(road.one_way for road in data.graph.roads)
    assert any(road.car_kmh == 0 for road in data.graph.roads)
    one_way = next(road for road in data.graph.roads if road.one_way)
    assert (one_way.kmh(Mode.CAR, backwards=True), one_way.kmh(Mode.FOOT, backwards=True)) == (0, 5)
    motorway = next(road for road in data.graph.roads if road.name == "Motorway")
    assert (motorway.kmh(Mode.CAR, backwards=False), motorway.kmh(Mode.BIKE, backwards=False)) == (110, 0)
    town = [place for place in data.places.values() if place.town == "Elmford"]
    assert any(lengths_differ(data, one, other) for one, other in itertools.combinations(town, 2))


def lengths_differ(data: MapData, p, q) -> bool:
    there, back = find_route(data, Mode.CAR, (p, q)), find_route(data, Mode.CAR, (q, p))
    return isinstance(there, Route) and isinstance(back, Route) and there.metres != back.metres


def test_no_way_names_the_leg_that_is_missing(data):
    places = list(data.places.values())
    on_island = next(p for p in places if p.town == words.ISLAND)
    found = find_route(data, Mode.CAR, [places[0], places[1], on_island])
    assert isinstance(found, Leg)
    assert (found.start, found.end) == (places[1], on_island)
    assert isinstance(shortest_tour(data, Mode.CAR, [places[0], on_island]), Leg)


def test_turns_add_up_to_the_leg_and_name_each_street_once_in_a_row(data):
    rng = random.Random(2)
    for start, end in [rng.sample(list(data.places.values()), 2) for _ in range(60)]:
        route = find_route(data, Mode.FOOT, [start, end])
        assert isinstance(route, Route)
        lines = turns(data, route.legs[0])
        assert sum(line.metres for line in lines) == route.metres
        assert lines[0].text == f"Start on {start.street}"
        assert lines[-1].text == f"Arrive at {end.name}"
        names = [stretch.name for stretch in route.legs[0].stretches]
        assert len(lines) == 1 + len(list(itertools.groupby(names)))


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ([(0, 0), (0, 100), (-100, 100)], "Turn left into b"),
        ([(0, 0), (0, 100), (100, 100)], "Turn right into b"),
        ([(0, 0), (0, 100), (10, 200)], "Go on along b"),
        ([(0, 0), (0, 100), (5, 0)], "Turn round into b"),
    ],
)
def test_turns_say_which_way_to_go(data, points, text):
    graph = RoadGraph(points, [Road(0, 1, "a", 100), Road(1, 2, "b", 100)])
    way = graph.quickest(0, 2, Mode.FOOT)
    assert way is not None
    ends = list(data.places.values())[:2]
    small = MapData({}, graph, {}, {})
    assert [turn.text for turn in turns(small, Leg(ends[0], ends[1], way))][:2] == ["Start on a", text]


def test_the_shortest_tour_is_no_longer_than_any_order_and_visits_each_place_once(data):
    places = random.Random(3).sample([p for p in data.places.values() if p.town == "Northam"], 4)
    tour = shortest_tour(data, Mode.BIKE, places)
    assert isinstance(tour, Route)
    orders = [find_route(data, Mode.BIKE, order) for order in itertools.permutations(places)]
    times = [sum(leg.seconds for leg in order.legs) for order in orders if isinstance(order, Route)]
    assert len(times) == 24
    assert sum(leg.seconds for leg in tour.legs) == pytest.approx(min(times))
    assert {tour.legs[0].start, *(leg.end for leg in tour.legs)} == set(places)


def test_times_and_lengths_are_rounded_for_people():
    assert [minutes(s) for s in (0.0, 1.0, 60.0, 60.0000000001, 61.0)] == [1, 1, 1, 1, 2]
    assert [distance(m) for m in (0, 999, 1000, 12_345)] == ["0 m", "999 m", "1.0 km", "12.3 km"]


@pytest.mark.parametrize("seed", range(3))
def test_places_have_addresses_of_their_own_and_some_names_are_shared_by_towns(seed):
    places = list(build(seed).places.values())
    assert 140 <= len(places) <= 170
    for what in ("label", "address", "postcode", "coordinates"):
        assert len({getattr(place, what) for place in places}) == len(places), what
    assert 10 <= sum(not place.phone for place in places) <= 60
    assert sum(count > 1 for count in Counter(place.name for place in places).values()) >= 20


def test_the_same_seed_gives_the_same_region_and_another_seed_another():
    build.cache_clear()
    first = build(5)
    build.cache_clear()
    assert build(5).places == first.places
    assert build(5).graph.roads == first.graph.roads
    assert build(6).places != first.places


def test_nearby_is_sorted_by_straight_distance_and_leaves_out_what_is_too_far(data):
    centre = data.places[1]
    found = data.nearby(centre, "cafe", 800)
    far = [math.dist(centre.point, place.point) for place in found]
    assert far == sorted(far)
    expected = {p for p in data.places.values() if p.kind == "cafe" and 0 < math.dist(centre.point, p.point) <= 800.5}
    assert set(found) == expected - {centre}
