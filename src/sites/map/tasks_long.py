"""The map's long task templates: several skills in a row, thirteen to seventeen steps.

Owns instructions, parameters, evaluations and milestones; the pieces come from ``sampling``, ``checks``
and ``experts``. Each of them is easily left unfinished or done to the wrong place or list.
"""

from __future__ import annotations

from records.episodes import Task
from sites import checks
from sites.map import checks as c
from sites.map import experts as e
from sites.map import sampling as s
from sites.map.data import MapData, Place
from sites.map.tasks_lists import DETAILS, NEW_LIST, NOTE, PROBLEM
from sites.old_form import Expert, Parameters, TaskTemplate

THREE = ("first", "second", "third")


def places(p: Parameters, d: MapData) -> list[Place]:
    """Return the places that an instruction names."""
    return [s.the(d, p[name]) for name in THREE if name in p]


def saved_three(p: Parameters, d: MapData) -> tuple[checks.Step, checks.Step, checks.Step]:
    """Milestones of saving three places to a list."""
    first, second, third = places(p, d)
    return (
        ("save the first place", c.saved(first, p["list"])),
        ("save the second place", c.saved(second, p["list"])),
        ("save the third place", c.saved(third, p["list"])),
    )


def save_all(task: Task) -> e.Skill:
    """Save three places to a list."""
    p = task.parameters
    for name in THREE[:-1]:
        yield from e.save_place(p[name], p["list"])
    return (yield from e.save_place(p[THREE[-1]], p["list"]))


def _move_two(task: Task) -> Expert:
    p = task.parameters
    seen = yield from e.open_list(p["list"])
    seen = yield from e.remove(seen, p["first"])
    yield from e.remove(seen, p["second"])
    yield from e.save_place(p["first"], p["other"])
    yield from e.save_place(p["second"], p["other"])
    yield from e.finish()


def _save_two_nearest(task: Task) -> Expert:
    p = task.parameters
    for kind in ("first", "second"):
        yield from e.open_place(p["place"], rivals=None)
        yield from e.open_nearest(p[kind])
        yield from e.save_to(p["list"])
    yield from e.finish()


def _day_trip(task: Task) -> Expert:
    p = task.parameters
    yield from e.make_list(p["list"])
    yield from e.save_place(p["place"], p["list"])
    yield from e.open_nearest(p["kind"])
    yield from e.save_to(p["list"])
    yield from e.write_note(p["text"])
    yield from e.finish()


LONG = (
    TaskTemplate(
        name="map.save_three",
        site="map",
        intent="Save {first}, {second} and {third} to the list {list}.",
        sample=s.joined(s.several(*THREE), s.draw(list=s.some_list)),
        evaluation=lambda p, d: checks.pages(c.holds(p["list"], *places(p, d))),
        milestones=lambda p, d: checks.milestones(
            ("find the first place", c.found(places(p, d)[0])), *saved_three(p, d)
        ),
        expert=e.script(save_all),
        horizon=13,
    ),
    TaskTemplate(
        name="map.new_list",
        site="map",
        intent="Make a list called {list} with {first}, {second} and {third}.",
        sample=s.joined(s.draw(list=NEW_LIST), s.several(*THREE)),
        evaluation=lambda p, d: checks.pages(c.holds(p["list"], *places(p, d)), c.counts(p["list"], 3)),
        milestones=lambda p, d: checks.milestones(
            ("make the list", checks.shows(f"The list {p['list']} was made.")), *saved_three(p, d)
        ),
        expert=e.script(lambda t: e.make_list(t.parameters["list"]), save_all),
        horizon=16,
    ),
    TaskTemplate(
        name="map.save_two_nearest",
        site="map",
        intent="Find the {first} and the {second} nearest to {place} and save both to the list {list}.",
        sample=s.joined(s.two_nearest, s.draw(list=s.some_list)),
        evaluation=lambda p, d: checks.pages(
            c.holds(p["list"], s.nearest_place(d, p, "first"), s.nearest_place(d, p, "second"))
        ),
        milestones=lambda p, d: checks.milestones(
            ("open the first place", c.at(s.nearest_place(d, p, "first").path)),
            ("save the first place", c.saved(s.nearest_place(d, p, "first"), p["list"])),
            ("open the second place", c.at(s.nearest_place(d, p, "second").path)),
            ("save the second place", c.saved(s.nearest_place(d, p, "second"), p["list"])),
        ),
        expert=_save_two_nearest,
        horizon=17,
    ),
    TaskTemplate(
        name="map.report_two",
        site="map",
        intent="Report the error {problem} about {first} and about {second} with the details: {details}",
        sample=s.joined(s.several("first", "second"), s.draw(problem=PROBLEM, details=DETAILS)),
        evaluation=lambda p, d: checks.pages(
            c.reported(s.the(d, p["first"]), p["problem"], p["details"], "#reports"),
            c.reported(s.the(d, p["second"]), p["problem"], p["details"]),
        ),
        milestones=lambda p, d: checks.milestones(
            ("open the first place", c.at(s.the(d, p["first"]).path)),
            ("report the first error", c.sent_report(s.the(d, p["first"]), p["problem"], p["details"])),
            ("open the second place", c.at(s.the(d, p["second"]).path)),
            ("report the second error", c.sent_report(s.the(d, p["second"]), p["problem"], p["details"])),
        ),
        expert=e.script(
            lambda t: e.report(t.parameters["first"], t.parameters["problem"], t.parameters["details"]),
            lambda t: e.report(t.parameters["second"], t.parameters["problem"], t.parameters["details"]),
        ),
        horizon=13,
    ),
    TaskTemplate(
        name="map.move_two",
        site="map",
        intent="Move {first} and {second} from the list {list} to the list {other}.",
        sample=s.listed,
        evaluation=lambda p, d: checks.pages(
            c.counts(p["list"], len(d.lists[p["list"]]) - 2), c.holds(p["other"], *places(p, d))
        ),
        milestones=lambda p, d: checks.milestones(
            ("remove the first place", checks.shows(f"{s.the(d, p['first']).name} was removed.")),
            ("remove the second place", checks.shows(f"{s.the(d, p['second']).name} was removed.")),
            ("save the first place", c.saved(s.the(d, p["first"]), p["other"])),
            ("save the second place", c.saved(s.the(d, p["second"]), p["other"])),
        ),
        expert=_move_two,
        horizon=13,
        split="validation",
    ),
    TaskTemplate(
        name="map.notes_and_report",
        site="map",
        intent="Add the note {text} to {first} and {second}. Report the error {problem} about {third}: {details}",
        sample=s.joined(s.draw(text=NOTE), s.several(*THREE), s.draw(problem=PROBLEM, details=DETAILS)),
        evaluation=lambda p, d: checks.pages(
            c.noted(s.the(d, p["first"]), p["text"]),
            c.noted(s.the(d, p["second"]), p["text"]),
            c.reported(s.the(d, p["third"]), p["problem"], p["details"]),
        ),
        milestones=lambda p, d: checks.milestones(
            ("note the first place", c.wrote_note(s.the(d, p["first"]), p["text"])),
            ("note the second place", c.wrote_note(s.the(d, p["second"]), p["text"])),
            ("open the report", c.at(f"{s.the(d, p['third']).path}/report")),
            ("send the report", c.sent_report(s.the(d, p["third"]), p["problem"], p["details"])),
        ),
        expert=e.script(
            lambda t: e.note(t.parameters["first"], t.parameters["text"]),
            lambda t: e.note(t.parameters["second"], t.parameters["text"]),
            lambda t: e.report(t.parameters["third"], t.parameters["problem"], t.parameters["details"]),
        ),
        horizon=15,
        split="test",
    ),
    TaskTemplate(
        name="map.day_trip",
        site="map",
        intent="Make a list called {list} with {place} and the {kind} nearest to it. Add the note {text} there.",
        sample=s.joined(s.draw(list=NEW_LIST), s.nearest, s.draw(text=NOTE)),
        evaluation=lambda p, d: checks.pages(
            c.holds(p["list"], s.the(d, p["place"]), s.nearest_place(d, p)), c.noted(s.nearest_place(d, p), p["text"])
        ),
        milestones=lambda p, d: checks.milestones(
            ("make the list", checks.shows(f"The list {p['list']} was made.")),
            ("save the place", c.saved(s.the(d, p["place"]), p["list"])),
            ("save the nearest place", c.saved(s.nearest_place(d, p), p["list"])),
            ("write the note", c.wrote_note(s.nearest_place(d, p), p["text"])),
        ),
        expert=_day_trip,
        horizon=16,
        split="test",
    ),
)
"""Templates of many steps."""
