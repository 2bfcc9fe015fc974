"""Parameters of the map's tasks about ways: ends, stops, and how to travel.

Owns the draws, under the rules of ``sampling``. Every way has a time that no other mode of travel takes, so
that a wrong mode never gives the right answer.
"""

from __future__ import annotations

import random

from sites.map import words
from sites.map.data import MapData
from sites.map.directions import PHRASES, Route, find_route
from sites.map.roads import Mode
from sites.map.sampling import Sampler, mainland, several, the
from sites.old_form import Parameters

MODES = {phrase: mode for mode, phrase in PHRASES.items()}
"""What instructions and pages call a mode of travel."""


def travel_minutes(data: MapData, how: str, *labels: str) -> int:
    """Return how long the quickest route over these places takes."""
    found = find_route(data, MODES[how], [the(data, label) for label in labels])
    if not isinstance(found, Route):
        raise ValueError(f"expected a way {how} over {labels}, found none")
    return found.minutes


def way(*names: str) -> Sampler:
    """Return a sampler of different places for a route, and a mode of travel whose time no other mode takes."""

    def sample(data: MapData, rng: random.Random) -> Parameters:
        while True:
            labels = [p.label for p in rng.sample(mainland(data), len(names))]
            times = {how: travel_minutes(data, how, *labels) for how in MODES}
            if len(set(times.values())) == len(times):
                return {"how": rng.choice(tuple(MODES)), **dict(zip(names, labels, strict=True))}

    return sample


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
    while True:
        p = several("start", "first", "second", "third")(data, rng)
        if len({walk(data, p, name) for name in ("first", "second", "third")}) == 3:
            return p


def walk(data: MapData, p: Parameters, end: str) -> int:
    """Return how many minutes it takes to walk from the start to the place that the parameter ``end`` names."""
    return travel_minutes(data, PHRASES[Mode.FOOT], p["start"], p[end])
