"""The map's task templates about ways: times, routes, stops and comparisons.

Owns instructions, parameters, evaluations and milestones; the pieces come from ``sampling``, ``checks``
and ``experts``.
"""

from __future__ import annotations

from collections.abc import Callable

from records.episodes import Task
from sites import checks
from sites.map import checks as c
from sites.map import experts as e
from sites.map import sampling as s
from sites.map import sampling_ways as w
from sites.map.data import MapData, Place
from sites.map.route_pages import route_path
from sites.old_form import Expert, Parameters, TaskTemplate, noting

_METRES = r"\d+(?= m\b)|\d+\.\d(?= km)"


def _path(p: Parameters, d: MapData, *names: str) -> str:
    return route_path(w.MODES[p["how"]], [s.the(d, p[name]) for name in names])


def _route_milestones(*names: str) -> Callable[[Parameters, MapData], checks.Milestones]:
    """Milestones of one route over the places that these parameters name."""
    start, *stops, end = names
    labels = ("From", *(f"Stop {number}" for number in range(1, len(stops) + 1)), "To")

    def milestones(p: Parameters, d: MapData) -> checks.Milestones:
        values = {label.replace(" ", "_"): p[name] for label, name in zip(labels, names, strict=True)}
        return checks.milestones(
            ("open the directions", c.at("/directions*")),
            ("fill in all places", c.fields(**values)),
            ("choose how to travel", c.fields(**values, Travel=p["how"])),
            ("see the route", c.at(_path(p, d, *names))),
        )

    return milestones


def _travel_time(*names: str) -> Callable[[Task], Expert]:
    """The expert who says how long a route takes, or that there is none."""

    def expert(task: Task) -> Expert:
        p = task.parameters
        seen = yield from e.ask_route(p["how"], *(p[name] for name in names))
        if "There is no way" in seen.page_text:
            yield from e.finish(checks.UNANSWERABLE)
        else:
            yield from e.finish(str(e.minutes(seen)), _METRES)

    return expert


def _show(*names: str) -> Callable[[Task], Expert]:
    return e.script(lambda t: e.ask_route(t.parameters["how"], *(t.parameters[name] for name in names)))


def _which_path(p: Parameters, d: MapData) -> str:
    stops: list[Place] = [d.find(p[name], p["town"]) for name in ("first", "second")]
    return route_path(w.MODES[p["how"]], stops)


def _which_milestones(p: Parameters, d: MapData) -> checks.Milestones:
    first, second = (d.find(p[name], p["town"]).label for name in ("first", "second"))
    return checks.milestones(
        ("fill in both places", c.fields(From=p["first"], To=p["second"])),
        ("be asked for the first place", checks.both(c.at("/directions?*"), checks.has(first, role="link"))),
        ("be asked for the second place", checks.both(c.at("/directions?*"), checks.has(second, role="link"))),
        ("see the route", c.at(_which_path(p, d))),
    )


def _show_which(task: Task) -> Expert:
    p = task.parameters
    yield from e.ask_route(p["how"], p["first"], p["second"])
    for name in ("first", "second"):
        yield from e.click(f"{p[name]}, {p['town']}", "link", rf"{p[name]}, [A-Z][a-z]+")
    yield from e.finish()


def _compare_milestones(p: Parameters, d: MapData) -> checks.Milestones:
    slow, fast = (_path({**p, "how": p[name]}, d, "start", "end") for name in ("slow", "fast"))
    return checks.milestones(
        ("open the directions", c.at("/directions*")),
        ("fill in both places", c.fields(From=p["start"], To=p["end"])),
        (f"see the way {p['slow']}", c.at(slow)),
        (f"see the way {p['fast']}", c.at(fast)),
    )


def _compare(task: Task) -> Expert:
    p = task.parameters
    slow = yield from e.ask_route(p["slow"], p["start"], p["end"])
    yield from noting(str(e.minutes(slow)), e.choose("Travel", p["fast"], e.CHOICES))
    fast = yield from e.click("Show route", "button")
    yield from e.finish(str(e.minutes(slow) - e.minutes(fast)), r"\d+(?= min in all)")


def _nearest_of_three(p: Parameters, d: MapData) -> Place:
    return s.the(d, p[min(("first", "second", "third"), key=lambda name: w.walk(d, p, name))])


def _three_milestones(p: Parameters, d: MapData) -> checks.Milestones:
    ways = {name: _path({**p, "how": "on foot"}, d, "start", name) for name in ("first", "second", "third")}
    return checks.milestones(
        ("see the first way", c.at(ways["first"])),
        ("see the second way", c.at(ways["second"])),
        ("see the third way", c.at(ways["third"])),
        ("open the nearest place", c.at(_nearest_of_three(p, d).path)),
    )


def _find_nearest_of_three(task: Task) -> Expert:
    p = task.parameters
    # Neither another way of travel nor a forgotten end need change which one is nearest.
    seen = yield from e.ask_route("on foot", p["start"], p["first"], rivals=None)
    times = {p["first"]: e.minutes(seen)}
    for before, name in (("first", "second"), ("second", "third")):
        seen = yield from noting(f"{p[before]} {times[p[before]]}", e.ask_other_end(p[name]))
        times[p[name]] = e.minutes(seen)
    seen = yield from e.open_place(min(times, key=lambda label: times[label]))
    yield from e.finish(e.fact(seen, "Postcode"), r"\b0\d0 \d{4}\b|\d+\.\d{4}")


ROUTES = (
    TaskTemplate(
        name="map.travel_time",
        site="map",
        intent="How many minutes does it take {how} from {start} to {end}?",
        sample=w.way("start", "end"),
        evaluation=lambda p, d: checks.answer(str(w.travel_minutes(d, p["how"], p["start"], p["end"]))),
        milestones=_route_milestones("start", "end"),
        expert=_travel_time("start", "end"),
        horizon=6,
    ),
    TaskTemplate(
        name="map.show_route",
        site="map",
        intent="Show the route {how} from {start} to {end}.",
        sample=w.way("start", "end"),
        evaluation=lambda p, d: c.ends_at(_path(p, d, "start", "end")),
        milestones=_route_milestones("start", "end"),
        expert=_show("start", "end"),
        horizon=6,
    ),
    TaskTemplate(
        name="map.no_route",
        site="map",
        intent="How many minutes does it take {how} from {start} to {end}?",
        sample=w.to_the_island,
        evaluation=lambda p, d: checks.no_answer("Cars cannot get to this town."),
        milestones=_route_milestones("start", "end"),
        expert=_travel_time("start", "end"),
        horizon=6,
    ),
    TaskTemplate(
        name="map.which_route",
        site="map",
        intent="Show the route {how} from {first} to {second} in {town}.",
        sample=w.shared_names,
        evaluation=lambda p, d: c.ends_at(_which_path(p, d)),
        milestones=_which_milestones,
        expert=_show_which,
        horizon=8,
    ),
    TaskTemplate(
        name="map.stop_time",
        site="map",
        intent="How many minutes does it take {how} from {start} over {stop} to {end}?",
        sample=w.way("start", "stop", "end"),
        evaluation=lambda p, d: checks.answer(str(w.travel_minutes(d, p["how"], p["start"], p["stop"], p["end"]))),
        milestones=_route_milestones("start", "stop", "end"),
        expert=_travel_time("start", "stop", "end"),
        horizon=8,
        split="validation",
    ),
    TaskTemplate(
        name="map.compare_modes",
        site="map",
        intent="How many minutes longer does it take {slow} than {fast} from {start} to {end}?",
        sample=w.two_modes,
        evaluation=lambda p, d: checks.answer(
            str(
                w.travel_minutes(d, p["slow"], p["start"], p["end"])
                - w.travel_minutes(d, p["fast"], p["start"], p["end"])
            )
        ),
        milestones=_compare_milestones,
        expert=_compare,
        horizon=8,
        split="test",
    ),
    TaskTemplate(
        name="map.nearest_of_three",
        site="map",
        intent="Which is the shortest walk from {start}: {first}, {second} or {third}? Answer with its postcode.",
        sample=w.three_ends,
        evaluation=lambda p, d: checks.answer(_nearest_of_three(p, d).postcode),
        milestones=_three_milestones,
        expert=_find_nearest_of_three,
        horizon=12,
        split="test",
    ),
    TaskTemplate(
        name="map.three_stops",
        site="map",
        intent="Show the route {how} from {start} over {first}, {second} and {third} to {end}.",
        sample=w.way("start", "first", "second", "third", "end"),
        evaluation=lambda p, d: c.ends_at(_path(p, d, "start", "first", "second", "third", "end")),
        milestones=_route_milestones("start", "first", "second", "third", "end"),
        expert=_show("start", "first", "second", "third", "end"),
        horizon=12,
    ),
)
"""Templates about ways."""
