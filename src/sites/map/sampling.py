"""Parameters of the map's tasks: which places, ways, lists and texts an instruction is about.

Owns the draws. Invariants: every drawn task can be solved as its expert solves it and has one right
answer, which a wrong choice on the way does not give by luck; parameters are JSON values and hold no
answers. Places go by their labels ("Blue Cafe, Elmford").
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sites.map import words
from sites.map.data import MapData, Place
from sites.map.place_pages import DEFAULT_WITHIN, WITHIN
from sites.old_form import Parameters

Draw = Callable[[MapData, random.Random], Any]
Sampler = Callable[[MapData, random.Random], Parameters]
FACTS = {"address": "Address", "postcode": "Postcode", "phone": "Phone", "coordinates": "Coordinates"}
"""What may be asked about a place, and how the page calls it."""
_CLEARLY_NEARER_M = 20
NEARBY_KINDS = tuple(kind for kind in words.KINDS if kind not in words.CIVIC)


def draw(**parts: Draw) -> Sampler:
    """Return a sampler that fills each parameter by its own draw."""

    def sample(data: MapData, rng: random.Random) -> Parameters:
        return {name: part(data, rng) for name, part in parts.items()}

    return sample


def joined(*groups: Sampler) -> Sampler:
    """Return a sampler that merges the parameters of several."""

    def sample(data: MapData, rng: random.Random) -> Parameters:
        return {name: value for group in groups for name, value in group(data, rng).items()}

    return sample


def one_of(*values: str) -> Draw:
    """Draw one of these values."""
    return lambda data, rng: rng.choice(values)


def the(data: MapData, label: str) -> Place:
    """Return the place of this label."""
    return data.by_label[label.lower()]


def mainland(data: MapData) -> list[Place]:
    """Return the places that cars can get to."""
    return [place for place in data.places.values() if place.town != words.ISLAND]


@lru_cache(maxsize=4)
def unsaved(data: MapData) -> tuple[Place, ...]:
    """Return the places on the mainland that are in none of the user's lists."""
    saved = {number for numbers in data.lists.values() for number in numbers}
    return tuple(place for place in mainland(data) if place.place_id not in saved)


def place(data: MapData, rng: random.Random) -> str:
    """Draw a place that is in no list."""
    return rng.choice(unsaved(data)).label


def several(*names: str) -> Sampler:
    """Return a sampler of different places of one town that are in no list."""

    def sample(data: MapData, rng: random.Random) -> Parameters:
        town = rng.choice(words.TOWNS)
        drawn = rng.sample([place.label for place in unsaved(data) if place.town == town], len(names))
        return dict(zip(names, drawn, strict=True))

    return sample


def fact(data: MapData, rng: random.Random) -> Parameters:
    """Draw a place and something that is known about it."""
    drawn, wanted = rng.choice(list(data.places.values())), rng.choice(tuple(FACTS))
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


def hour(data: MapData, p: Parameters) -> str:
    """Return when the place opens or closes on those days."""
    at = the(data, p["place"])
    hours = at.weekdays if p["days"] == "weekdays" else at.weekend
    return hours.split("-")[0 if p["event"] == "open" else 1]


def nowhere(data: MapData, rng: random.Random) -> Parameters:
    """Draw a name that several towns have, and a town that does not have it."""
    towns = (*words.TOWNS, words.ISLAND)
    shared = sorted({p.name for p in data.places.values() if len(data.named(p.name)) > 1})
    missing = [f"{name}, {town}" for name in shared for town in towns if f"{name}, {town}".lower() not in data.by_label]
    return {"place": rng.choice(missing)}


def nearest(data: MapData, rng: random.Random) -> Parameters:
    """Draw a place and a kind of which one place is clearly the nearest, within the default distance."""
    while True:
        centre, kind = rng.choice(unsaved(data)), rng.choice(NEARBY_KINDS)
        if _clear(data, centre, kind):
            return {"kind": kind, "place": centre.label}


def two_nearest(data: MapData, rng: random.Random) -> Parameters:
    """Draw a place and two kinds, as ``nearest`` does."""
    while True:
        centre, (first, second) = rng.choice(unsaved(data)), rng.sample(NEARBY_KINDS, 2)
        if _clear(data, centre, first) and _clear(data, centre, second):
            return {"first": first, "second": second, "place": centre.label}


def _clear(data: MapData, centre: Place, kind: str) -> bool:
    """Whether one place of the kind is clearly the nearest to the centre, and not saved yet."""
    found = data.nearby(centre, kind, WITHIN[DEFAULT_WITHIN])
    if kind == centre.kind or not found or found[0] not in unsaved(data):
        return False
    return len(found) == 1 or centre.metres_to(found[1]) - centre.metres_to(found[0]) >= _CLEARLY_NEARER_M


def nearest_place(data: MapData, p: Parameters, kind: str = "kind") -> Place:
    """Return the nearest place of the kind that the parameter ``kind`` names."""
    return data.nearby(the(data, p["place"]), p[kind])[0]


def within(data: MapData, p: Parameters) -> list[Place]:
    """Return the places of a kind within a distance of a place, nearest first."""
    return data.nearby(the(data, p["place"]), p["kind"], WITHIN[p["distance"]])


def _within(data: MapData, rng: random.Random) -> tuple[Parameters, list[Place]]:
    centre, kind = rng.choice(mainland(data)), rng.choice(NEARBY_KINDS)
    distance = rng.choice([name for name in WITHIN if name != DEFAULT_WITHIN])
    p = {"kind": kind, "place": centre.label, "distance": distance}
    return p, within(data, p)


def count_within(data: MapData, rng: random.Random) -> Parameters:
    """Draw a kind and a distance whose number of places another distance does not give."""
    while True:
        p, found = _within(data, rng)
        others = {
            len(data.nearby(the(data, p["place"]), p["kind"], m)) for n, m in WITHIN.items() if n != p["distance"]
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
        farther = data.nearby(the(data, p["place"]), p["kind"], WITHIN[DEFAULT_WITHIN])
        if not found and farther and WITHIN[p["distance"]] < WITHIN[DEFAULT_WITHIN]:
            return p


def some_list(data: MapData, rng: random.Random) -> str:
    """Draw one of the user's lists."""
    return rng.choice(tuple(data.lists))


def listed(data: MapData, rng: random.Random) -> Parameters:
    """Draw a list, two of its places in their order, and another list."""
    name, other = rng.sample(tuple(data.lists), 2)
    first, second = sorted(rng.sample(range(len(data.lists[name])), 2))
    labels = [data.places[number].label for number in data.lists[name]]
    return {"list": name, "first": labels[first], "second": labels[second], "other": other}


def one_listed(data: MapData, rng: random.Random) -> Parameters:
    """Draw a list, one of its places, and another list."""
    name, other = rng.sample(tuple(data.lists), 2)
    return {"list": name, "first": data.places[rng.choice(data.lists[name])].label, "other": other}
