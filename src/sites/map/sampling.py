"""Parameters of the map's tasks: which places, ways, lists and texts an instruction is about.

Owns the draws. Invariants: every drawn task can be solved as its expert solves it and has one right
answer, which a wrong choice on the way does not give by luck (every way has a time that no other mode of travel
takes); parameters are JSON values and hold no answers. Places go by their labels ("Blue Cafe, Elmford").
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache

from sites.kept import SEEDS_KEPT
from sites.map import words
from sites.map.data import MapData, Place
from sites.map.directions import PHRASES, Route, find_route, shortest_tour
from sites.map.place_pages import DEFAULT_WITHIN, WITHIN
from sites.map.roads import Mode
from sites.task_template import Parameters

_CLEARLY_NEARER_M = 20
_FACTS = ("address", "postcode", "phone", "coordinates")
_NEARBY_KINDS = tuple(kind for kind in words.KINDS if kind not in words.CIVIC)
MODES = {phrase: mode for mode, phrase in PHRASES.items()}
"""What instructions and pages call a mode of travel."""
ON_FOOT = PHRASES[Mode.FOOT]


def mainland(data: MapData) -> list[Place]:
    """Return the places that cars can get to."""
    return [place for place in data.places.values() if place.town != words.ISLAND]


@lru_cache(maxsize=SEEDS_KEPT)
def unsaved(data: MapData) -> tuple[Place, ...]:
    """Return the places on the mainland that are in none of the user's lists."""
    saved = {number for numbers in data.lists.values() for number in numbers}
    return tuple(place for place in mainland(data) if place.place_id not in saved)


def place(data: MapData, rng: random.Random) -> str:
    """Draw a place that is in no list."""
    return rng.choice(unsaved(data)).label


def several(*names: str) -> Callable[[MapData, random.Random], Parameters]:
    """Return a draw of different places of one town that are in no list."""

    def draw(data: MapData, rng: random.Random) -> Parameters:
        town = rng.choice(words.TOWNS)
        drawn = rng.sample([place.label for place in unsaved(data) if place.town == town], len(names))
        return dict(zip(names, drawn, strict=True))

    return draw


def fact(data: MapData, rng: random.Random) -> Parameters:
    """Draw a place and something that is known about it."""
    drawn, wanted = rng.choice(list(data.places.values())), rng.choice(_FACTS)
    return {"fact": wanted, "place": drawn.label} if drawn.phone or wanted != "phone" else fact(data, rng)


def unknown_fact(data: MapData, rng: random.Random) -> Parameters:
    """Draw a place and something that the map does not know about it: often its phone."""
    wanted = rng.choice(("phone", "phone", "website", "email"))
    return {"fact": wanted, "place": rng.choice([p for p in data.places.values() if not p.phone]).label}


def opening_hours(data: MapData, rng: random.Random) -> Parameters:
    """Draw a place with opening hours, and one end of them."""
    open_both = [p for p in data.places.values() if p.weekend != "closed" and p.weekdays != p.weekend]
    days, event = rng.choice(("weekdays", "the weekend")), rng.choice(("open", "close"))
    return {"place": rng.choice(open_both).label, "event": event, "days": days}


def nowhere(data: MapData, rng: random.Random) -> str:
    """Draw a name that several towns have, and a town that does not have it."""
    towns = (*words.TOWNS, words.ISLAND)
    shared = sorted({p.name for p in data.places.values() if len(data.named(p.name)) > 1})
    missing = [f"{name}, {town}" for name in shared for town in towns if f"{name}, {town}".lower() not in data.by_label]
    return rng.choice(missing)


def nearest(data: MapData, rng: random.Random) -> Parameters:
    """Draw a place and a kind of which one place is clearly the nearest, within the default distance."""
    while True:
        centre, kind = rng.choice(unsaved(data)), rng.choice(_NEARBY_KINDS)
        if _clear(data, centre, kind):
            return {"kind": kind, "place": centre.label}


def two_nearest(data: MapData, rng: random.Random) -> Parameters:
    """Draw a place and two kinds, as ``nearest`` does."""
    while True:
        centre, (first, second) = rng.choice(unsaved(data)), rng.sample(_NEARBY_KINDS, 2)
        if _clear(data, centre, first) and _clear(data, centre, second):
            return {"first": first, "second": second, "place": centre.label}


def _clear(data: MapData, centre: Place, kind: str) -> bool:
    """Whether one place of the kind is clearly the nearest to the centre, and not saved yet."""
    found = data.nearby(centre, kind, WITHIN[DEFAULT_WITHIN])
    if kind == centre.kind or not found or found[0] not in unsaved(data):
        return False
    return len(found) == 1 or centre.metres_to(found[1]) - centre.metres_to(found[0]) >= _CLEARLY_NEARER_M


def _within(data: MapData, rng: random.Random) -> tuple[Parameters, list[Place]]:
    centre, kind = rng.choice(mainland(data)), rng.choice(_NEARBY_KINDS)
    distance = rng.choice([name for name in WITHIN if name != DEFAULT_WITHIN])
    p = {"kind": kind, "place": centre.label, "distance": distance}
    return p, data.nearby(centre, kind, WITHIN[distance])


def count_within(data: MapData, rng: random.Random) -> Parameters:
    """Draw a kind and a distance whose number of places another distance does not give."""
    while True:
        p, found = _within(data, rng)
        others = {
            len(data.nearby(data.labelled(p["place"]), p["kind"], m)) for n, m in WITHIN.items() if n != p["distance"]
        }
        if len(found) > 1 and len(found) not in others:
            return p


def one_within(data: MapData, rng: random.Random) -> Parameters:
    """Draw a short distance within which there is one place of the kind."""
    while True:
        p, found = _within(data, rng)
        if len(found) == 1 and WITHIN[p["distance"]] < WITHIN[DEFAULT_WITHIN]:
            return p


def none_within(data: MapData, rng: random.Random) -> Parameters:
    """Draw a short distance within which there is no place of the kind, though there is one farther off."""
    while True:
        p, found = _within(data, rng)
        farther = data.nearby(data.labelled(p["place"]), p["kind"], WITHIN[DEFAULT_WITHIN])
        if not found and farther and WITHIN[p["distance"]] < WITHIN[DEFAULT_WITHIN]:
            return p


def some_list(data: MapData, rng: random.Random) -> str:
    """Draw one of the user's lists."""
    return rng.choice(tuple(data.lists))


def two_listed(data: MapData, rng: random.Random) -> Parameters:
    """Draw a list, two of its places in their order, and another list."""
    name, other = rng.sample(tuple(data.lists), 2)
    first, second = sorted(rng.sample(range(len(data.lists[name])), 2))
    labels = [data.places[number].label for number in data.lists[name]]
    return {"list": name, "first": labels[first], "second": labels[second], "other": other}


def one_listed(data: MapData, rng: random.Random) -> Parameters:
    """Draw a list, one of its places, and another list."""
    name, other = rng.sample(tuple(data.lists), 2)
    return {"list": name, "first": data.places[rng.choice(data.lists[name])].label, "other": other}


def travel_minutes(data: MapData, how: str, *labels: str) -> int:
    """Return how long the quickest route over these places takes."""
    found = find_route(data, MODES[how], [data.labelled(label) for label in labels])
    if not isinstance(found, Route):
        raise ValueError(f"expected a way {how} over {labels}, found none")
    return found.minutes


def way(*names: str) -> Callable[[MapData, random.Random], Parameters]:
    """Return a draw of different places for a route, and a mode of travel whose time no other mode takes."""

    def draw(data: MapData, rng: random.Random) -> Parameters:
        while True:
            labels = [p.label for p in rng.sample(mainland(data), len(names))]
            times = {how: travel_minutes(data, how, *labels) for how in MODES}
            if len(set(times.values())) == len(times):
                return {"how": rng.choice(tuple(MODES)), **dict(zip(names, labels, strict=True))}

    return draw


def two_modes(data: MapData, rng: random.Random) -> Parameters:
    """Draw two places, and two modes of travel, the slower first."""
    p = way("start", "end")(data, rng)
    by_time = sorted(rng.sample(tuple(MODES), 2), key=lambda how: -travel_minutes(data, how, p["start"], p["end"]))
    return {"slow": by_time[0], "fast": by_time[1], "start": p["start"], "end": p["end"]}


def to_the_island(data: MapData, rng: random.Random) -> Parameters:
    """Draw a place on the mainland and one that cars cannot get to."""
    end = rng.choice([p for p in data.places.values() if p.town == words.ISLAND])
    return {"how": PHRASES[Mode.CAR], "start": rng.choice(mainland(data)).label, "end": end.label}


def shared_names(data: MapData, rng: random.Random) -> Parameters:
    """Draw two places of one town whose names other towns have too, and a mode of travel."""
    while True:
        town = rng.choice(words.TOWNS)
        shared = [p.name for p in mainland(data) if p.town == town and len(data.named(p.name)) > 1]
        if len(shared) >= 2:
            first, second = rng.sample(shared, 2)
            return {"how": rng.choice(tuple(MODES)), "first": first, "second": second, "town": town}


def three_ends(data: MapData, rng: random.Random) -> Parameters:
    """Draw a place and three others of its town, which are different numbers of minutes away on foot."""
    names = ("first", "second", "third")
    while True:
        p = several("start", *names)(data, rng)
        if len({travel_minutes(data, ON_FOOT, p["start"], p[name]) for name in names}) == 3:
            return p


def _grown(data: MapData, name: str, label: str) -> list[Place]:
    """Return the places of a list with one more."""
    return [*(data.places[number] for number in data.lists[name]), data.labelled(label)]


def tour_minutes(data: MapData, name: str, label: str, how: str) -> int:
    """Return how long the shortest tour over a list with one more place takes."""
    found = shortest_tour(data, MODES[how], _grown(data, name, label))
    if not isinstance(found, Route):
        raise ValueError(f"expected a tour {how} over {name} with {label}, found none")
    return found.minutes


def tour_with(data: MapData, rng: random.Random) -> Parameters:
    """Draw a place for a list such that neither order nor mode, list nor place may be wrong without a trace."""
    while True:
        name, how = rng.choice(tuple(data.lists)), rng.choice(tuple(MODES))
        town = data.places[data.lists[name][0]].town
        label = rng.choice([place for place in unsaved(data) if place.town == town]).label
        as_listed = find_route(data, MODES[how], _grown(data, name, label))
        without = shortest_tour(data, MODES[how], _grown(data, name, label)[:-1])
        times = [tour_minutes(data, name, label, mode) for mode in MODES]
        wrong = [found.minutes for found in (as_listed, without) if isinstance(found, Route)]
        if len({*times, *wrong}) == len(times) + len(set(wrong)):
            return {"place": label, "list": name, "how": how}
