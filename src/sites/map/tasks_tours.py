"""The map's task templates about tours: the longest ones, eleven to twenty-two steps.

Owns instructions, parameters, evaluations and milestones; the pieces come from ``sampling``, ``checks``
and ``experts``. A tour in the listed order, by another way of travel or without a place shows another time.
"""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.map import checks as c
from sites.map import experts as e
from sites.map import sampling as s
from sites.map.data import MapData, Place
from sites.map.directions import Route, find_route, shortest_tour
from sites.map.sampling_ways import MODES
from sites.map.tasks_lists import NEW_LIST
from sites.map.tasks_long import THREE, places, save_all
from sites.old_form import Expert, Parameters, TaskTemplate


def _tour_path(name: str, how: str) -> str:
    return f"{c.list_path(name)}/tour?mode={MODES[how]}&order=Shortest"


def _grown(p: Parameters, d: MapData) -> list[Place]:
    return [*(d.places[number] for number in d.lists[p["list"]]), s.the(d, p["place"])]


def _tour_minutes(p: Parameters, d: MapData, how: str) -> int:
    found = shortest_tour(d, MODES[how], _grown(p, d))
    if not isinstance(found, Route):
        raise ValueError(f"expected a tour {how} over {p}, found none")
    return found.minutes


def _sample_tour(d: MapData, rng: random.Random) -> Parameters:
    """Draw a place for a list such that neither order nor mode, list nor place may be wrong without a trace."""
    while True:
        name, how = rng.choice(tuple(d.lists)), rng.choice(tuple(MODES))
        town = d.places[d.lists[name][0]].town
        place = rng.choice([place for place in s.unsaved(d) if place.town == town])
        p = {"place": place.label, "list": name, "how": how}
        as_listed = find_route(d, MODES[how], _grown(p, d))
        without = shortest_tour(d, MODES[how], _grown(p, d)[:-1])
        times = [_tour_minutes(p, d, mode) for mode in MODES]
        wrong = [found.minutes for found in (as_listed, without) if isinstance(found, Route)]
        if len({*times, *wrong}) == len(times) + len(set(wrong)):
            return p


def _answer_tour(task: Task) -> Expert:
    p = task.parameters
    yield from e.save_place(p["place"], p["list"])
    seen = yield from e.plan_tour(p["list"], p["how"])
    yield from e.finish(str(e.minutes(seen)), r"\d+(?= min$)|\d+(?= m\b)")


TOURS = (
    TaskTemplate(
        name="map.tour_with",
        site="map",
        intent="Save {place} to the list {list}. How many minutes does the shortest tour of this list take {how} then?",
        sample=_sample_tour,
        evaluation=lambda p, d: checks.answer(str(_tour_minutes(p, d, p["how"]))),
        milestones=lambda p, d: checks.milestones(
            ("open the place", c.at(s.the(d, p["place"]).path)),
            ("save the place", c.saved(s.the(d, p["place"]), p["list"])),
            ("plan a tour", c.at(f"{c.list_path(p['list'])}/tour*")),
            ("see the shortest tour", c.at(_tour_path(p["list"], p["how"]))),
        ),
        expert=_answer_tour,
        horizon=11,
    ),
    TaskTemplate(
        name="map.plan_tour",
        site="map",
        intent="Make a list called {list} with {first}, {second} and {third}. Then show its shortest tour {how}.",
        sample=s.joined(s.draw(list=NEW_LIST), s.several(*THREE), s.draw(how=s.one_of(*MODES))),
        evaluation=lambda p, d: c.ends_at(_tour_path(p["list"], p["how"]), c.holds(p["list"], *places(p, d))),
        milestones=lambda p, d: checks.milestones(
            ("make the list", checks.shows(f"The list {p['list']} was made.")),
            ("save the first place", c.saved(places(p, d)[0], p["list"])),
            ("save the third place", c.saved(places(p, d)[2], p["list"])),
            ("see the shortest tour", checks.both(c.at(_tour_path(p["list"], p["how"])), checks.shows("min in all"))),
        ),
        expert=e.script(
            lambda t: e.make_list(t.parameters["list"]),
            save_all,
            lambda t: e.plan_tour(t.parameters["list"], t.parameters["how"]),
        ),
        horizon=22,
    ),
)
"""Templates about tours."""
