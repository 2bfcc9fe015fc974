"""The map's task templates about places: their facts, and what is near them.

Owns instructions, parameters, evaluations and milestones; the pieces come from ``sampling``, ``checks``
and ``experts``. Some questions have no answer: their experts look where it would be and say "N/A".
"""

from __future__ import annotations

from records.episodes import Task
from sites import checks
from sites.map import checks as c
from sites.map import experts as e
from sites.map import sampling as s
from sites.map.data import MapData, Place
from sites.old_form import Expert, Parameters, TaskTemplate

_POSTCODES = r"\b\d{5}\b"
_COORDINATES = r"\d+\.\d{4}"
_HOURS = r"\d+:00"
_METRES = r"\d+(?= m\b)"


def _place(p: Parameters, d: MapData) -> Place:
    return s.the(d, p["place"])


def _facts(p: Parameters, d: MapData) -> dict[str, str]:
    place = _place(p, d)
    return {
        "address": f"{place.number} {place.street}",
        "postcode": place.postcode,
        "phone": place.phone,
        "coordinates": place.coordinates,
    }


def _place_milestones(p: Parameters, d: MapData) -> checks.Milestones:
    place = _place(p, d)
    return checks.milestones(
        ("see a search box", checks.has("Search", role="searchbox")),
        ("search", c.at("/search*")),
        *c.opening(place),
    )


def _nearby_milestones(p: Parameters, d: MapData) -> checks.Milestones:
    place = _place(p, d)
    near = c.at(f"{place.path}/nearby*")
    asked = checks.both(near, checks.has("Kind", p["kind"]))
    shown = c.at(f"{place.path}/nearby?kind={p['kind']}&within={p.get('distance', '1 km').replace(' ', '+')}")
    return checks.milestones(
        ("open the place", c.at(f"{place.path}*")),
        ("open the nearby search", near),
        ("choose the kind", asked),
        ("see what is near", shown),
    )


def _missing_milestones(p: Parameters, d: MapData) -> checks.Milestones:
    name = p["place"].split(", ")[0]
    return checks.milestones(
        ("start on the map", c.at("/*")),
        ("see a search box", checks.has("Search", role="searchbox")),
        ("search", c.at("/search*")),
        ("see that only other towns have such a place", checks.both(c.at("/search*"), checks.has(name, role="link"))),
    )


def _find_fact(task: Task) -> Expert:
    label = s.FACTS[task.parameters["fact"]]
    rivals = _COORDINATES if label == "Postcode" else _POSTCODES
    seen = yield from e.open_place(task.parameters["place"])
    yield from e.finish(e.fact(seen, label), rivals)


def _miss_fact(task: Task) -> Expert:
    seen = yield from e.open_place(task.parameters["place"], rivals=None)
    label = task.parameters["fact"].capitalize()
    known = f"{label} |" in seen.text and e.fact(seen, label) != e.NOT_KNOWN
    yield from e.finish(e.fact(seen, label) if known else checks.UNANSWERABLE, _POSTCODES)


def _find_hour(task: Task) -> Expert:
    p = task.parameters
    seen = yield from e.open_place(p["place"], rivals=None)
    hours = e.fact(seen, "Weekdays" if p["days"] == "weekdays" else "Weekend").split("-")
    yield from e.finish(hours[0 if p["event"] == "open" else 1], _HOURS)


def _miss_place(task: Task) -> Expert:
    name, town = task.parameters["place"].split(", ")
    seen = yield from e.search_for(task.parameters["place"])
    try:
        e.position(seen, name, town)
    except LookupError:
        yield from e.finish(checks.UNANSWERABLE, r"\d+ [A-Z][a-z]+ [A-Z][a-z]+")
    else:
        yield from e.finish()


def _name_nearest(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_place(p["place"], rivals=None)
    seen = yield from e.show_nearby(p["kind"], p.get("distance", ""), None)
    if e.found_count(seen) == "0":
        yield from e.finish(checks.UNANSWERABLE, r"\d+(?= found)")
    else:
        yield from e.finish(e.nearest(seen), _METRES)


def _count(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_place(p["place"], rivals=None)
    seen = yield from e.show_nearby(p["kind"], p["distance"], None)
    yield from e.finish(e.found_count(seen), _METRES)


PLACES = (
    TaskTemplate(
        name="map.place_fact",
        site="map",
        intent="What is the {fact} of {place}?",
        sample=s.fact,
        evaluation=lambda p, d: checks.answer(_facts(p, d)[p["fact"]]),
        milestones=_place_milestones,
        expert=_find_fact,
        horizon=3,
    ),
    TaskTemplate(
        name="map.unknown_fact",
        site="map",
        intent="What is the {fact} of {place}?",
        sample=s.unknown_fact,
        evaluation=lambda p, d: checks.no_answer("The map does not say this about the place."),
        milestones=_place_milestones,
        expert=_miss_fact,
        horizon=3,
    ),
    TaskTemplate(
        name="map.hours",
        site="map",
        intent="At what time does {place} {event} on {days}?",
        sample=s.opening_hours,
        evaluation=lambda p, d: checks.answer(s.hour(d, p)),
        milestones=_place_milestones,
        expert=_find_hour,
        horizon=3,
    ),
    TaskTemplate(
        name="map.no_place",
        site="map",
        intent="What is the address of {place}?",
        sample=s.nowhere,
        evaluation=lambda p, d: checks.no_answer("Only other towns have a place of this name."),
        milestones=_missing_milestones,
        expert=_miss_place,
        horizon=2,
    ),
    TaskTemplate(
        name="map.nearest",
        site="map",
        intent="Which {kind} is nearest to {place}?",
        sample=s.nearest,
        evaluation=lambda p, d: checks.answer(s.nearest_place(d, p).name),
        milestones=_nearby_milestones,
        expert=_name_nearest,
        horizon=6,
    ),
    TaskTemplate(
        name="map.count_within",
        site="map",
        intent="How many places of the kind {kind} are within {distance} of {place}?",
        sample=s.count_within,
        evaluation=lambda p, d: checks.answer(str(len(s.within(d, p)))),
        milestones=_nearby_milestones,
        expert=_count,
        horizon=7,
    ),
    TaskTemplate(
        name="map.one_within",
        site="map",
        intent="Which {kind} is within {distance} of {place}?",
        sample=s.one_within,
        evaluation=lambda p, d: checks.answer(s.within(d, p)[0].name),
        milestones=_nearby_milestones,
        expert=_name_nearest,
        horizon=7,
    ),
    TaskTemplate(
        name="map.none_within",
        site="map",
        intent="Which {kind} is within {distance} of {place}?",
        sample=s.none_within,
        evaluation=lambda p, d: checks.no_answer("There is no place of this kind within this distance."),
        milestones=_nearby_milestones,
        expert=_name_nearest,
        horizon=7,
    ),
)
"""Templates about places."""
