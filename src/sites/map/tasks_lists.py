"""The map's shorter task templates that change something: saving, notes, reports, lists.

Owns instructions, parameters, evaluations and milestones; the pieces come from ``sampling``, ``checks``
and ``experts``.
"""

from __future__ import annotations

from records.episodes import Task
from sites import checks
from sites.map import checks as c
from sites.map import experts as e
from sites.map import sampling as s
from sites.map import words
from sites.map.accounts import PASSWORD
from sites.map.data import ME, MapData, Place
from sites.old_form import Expert, Parameters, TaskTemplate

NEW_LIST = s.one_of(*words.LIST_NAMES)
NOTE = s.one_of(*words.NOTES)
PROBLEM = s.one_of(*words.PROBLEMS)
DETAILS = s.one_of(*words.DETAILS)


def _place(p: Parameters, d: MapData) -> Place:
    return s.the(d, p["place"])


def _rename(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_list(p["list"])
    yield from e.write("Name", p["name"])
    yield from e.click("Rename", "button")
    yield from e.finish()


def _replace_list(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_list(p["list"])
    yield from e.click("Delete list", "link")
    yield from e.click("Yes, delete", "button")
    yield from e.write("New list", p["name"])
    yield from e.click("Make list", "button")
    yield from e.finish()


def _move_place(task: Task) -> Expert:
    p = task.parameters
    seen = yield from e.open_list(p["list"])
    yield from e.remove(seen, p["first"])
    yield from e.save_place(p["first"], p["other"])
    yield from e.finish()


def _log_in_and_note(task: Task) -> Expert:
    p = task.parameters
    yield from e.click("Log in", "link")
    yield from e.write("User name", p["user"])
    yield from e.write("Password", p["password"])
    yield from e.click("Log in", "button")
    yield from e.note(p["place"], p["text"])
    yield from e.finish()


def _list_milestones(p: Parameters) -> tuple[checks.Step, checks.Step]:
    path = c.list_path(p["list"])
    return ("see the lists", c.at("/lists*")), ("open the list", c.at(f"{path}*"))


LISTS = (
    TaskTemplate(
        name="map.save_place",
        site="map",
        intent="Save {place} to the list {list}.",
        sample=s.draw(place=s.place, list=s.some_list),
        evaluation=lambda p, d: checks.pages(c.holds(p["list"], _place(p, d))),
        milestones=lambda p, d: checks.milestones(
            *c.opening(_place(p, d)),
            ("choose the list", checks.both(c.at(_place(p, d).path), checks.has("List", p["list"]))),
            ("save the place", c.saved(_place(p, d), p["list"])),
        ),
        expert=e.script(lambda t: e.save_place(t.parameters["place"], t.parameters["list"])),
        horizon=5,
    ),
    TaskTemplate(
        name="map.note",
        site="map",
        intent="Add the note {text} to {place}.",
        sample=s.draw(text=NOTE, place=s.place),
        evaluation=lambda p, d: checks.pages(c.noted(_place(p, d), p["text"])),
        milestones=lambda p, d: checks.milestones(
            *c.opening(_place(p, d)),
            ("write the note", checks.both(c.at(_place(p, d).path), checks.has("Note", p["text"]))),
            ("save the note", c.wrote_note(_place(p, d), p["text"])),
        ),
        expert=e.script(lambda t: e.note(t.parameters["place"], t.parameters["text"])),
        horizon=5,
    ),
    TaskTemplate(
        name="map.report",
        site="map",
        intent="Report the error {problem} about {place} with the details: {details}",
        sample=s.draw(problem=PROBLEM, place=s.place, details=DETAILS),
        evaluation=lambda p, d: checks.pages(c.reported(_place(p, d), p["problem"], p["details"])),
        milestones=lambda p, d: checks.milestones(
            ("open the place", c.at(f"{_place(p, d).path}*")),
            ("open the form", c.at(f"{_place(p, d).path}/report")),
            (
                "choose the problem",
                checks.both(c.at(f"{_place(p, d).path}/report"), checks.has("Problem", p["problem"])),
            ),
            ("send the report", c.sent_report(_place(p, d), p["problem"], p["details"])),
        ),
        expert=e.script(lambda t: e.report(t.parameters["place"], t.parameters["problem"], t.parameters["details"])),
        horizon=7,
    ),
    TaskTemplate(
        name="map.rename_list",
        site="map",
        intent="Rename the list {list} to {name}.",
        sample=s.draw(list=s.some_list, name=NEW_LIST),
        evaluation=lambda p, d: checks.pages(
            c.equals(c.list_path(p["name"]), "#name", p["name"]),
            c.holds(p["name"], *(d.places[number] for number in d.lists[p["list"]])),
        ),
        milestones=lambda p, d: checks.milestones(
            *_list_milestones(p),
            ("write the name", checks.both(c.at(c.list_path(p["list"])), checks.has("Name", p["name"]))),
            ("rename the list", c.at(c.list_path(p["name"]))),
        ),
        expert=_rename,
        horizon=5,
    ),
    TaskTemplate(
        name="map.replace_list",
        site="map",
        intent="Delete the list {list} and make a list called {name}.",
        sample=s.draw(list=s.some_list, name=NEW_LIST),
        evaluation=lambda p, d: checks.pages(
            c.includes("/lists", "#lists", *(n for n in d.lists if n != p["list"]), p["name"]),
            c.equals("/lists", "#count", f"{len(d.lists)} lists"),
        ),
        milestones=lambda p, d: checks.milestones(
            *_list_milestones(p),
            ("delete the list", checks.both(c.at("/lists"), checks.shows(f"The list {p['list']} was deleted."))),
            ("make the new list", checks.both(c.at("/lists"), checks.shows(f"The list {p['name']} was made."))),
        ),
        expert=_replace_list,
        horizon=7,
    ),
    TaskTemplate(
        name="map.move_place",
        site="map",
        intent="Move {first} from the list {list} to the list {other}.",
        sample=s.one_listed,
        evaluation=lambda p, d: checks.pages(
            c.counts(p["list"], len(d.lists[p["list"]]) - 1), c.holds(p["other"], s.the(d, p["first"]))
        ),
        milestones=lambda p, d: checks.milestones(
            ("open the list", c.at(f"{c.list_path(p['list'])}*")),
            ("remove the place", checks.shows(f"{s.the(d, p['first']).name} was removed.")),
            ("open the place", c.at(f"{s.the(d, p['first']).path}*")),
            ("save the place", c.saved(s.the(d, p["first"]), p["other"])),
        ),
        expert=_move_place,
        horizon=8,
    ),
    TaskTemplate(
        name="map.save_nearest",
        site="map",
        intent="Find the {kind} nearest to {place} and save it to the list {list}.",
        sample=s.joined(s.nearest, s.draw(list=s.some_list)),
        evaluation=lambda p, d: checks.pages(c.holds(p["list"], s.nearest_place(d, p))),
        milestones=lambda p, d: checks.milestones(
            ("open the place", c.at(f"{_place(p, d).path}*")),
            ("search nearby", c.at(f"{_place(p, d).path}/nearby?kind={p['kind']}*")),
            ("open the nearest place", c.at(s.nearest_place(d, p).path)),
            ("save the place", c.saved(s.nearest_place(d, p), p["list"])),
        ),
        expert=e.script(
            # Another place may have the same nearest one, so that taking it would not be wrong.
            lambda t: e.open_place(t.parameters["place"], rivals=None),
            lambda t: e.open_nearest(t.parameters["kind"]),
            lambda t: e.save_to(t.parameters["list"]),
        ),
        horizon=9,
        split="validation",
    ),
    TaskTemplate(
        name="map.log_in_and_note",
        site="map",
        intent="Log in as {user} with password {password} and add the note {text} to {place}.",
        sample=s.draw(user=s.one_of(ME), password=s.one_of(PASSWORD), text=NOTE, place=s.place),
        evaluation=lambda p, d: checks.pages(c.noted(_place(p, d), p["text"])),
        milestones=lambda p, d: checks.milestones(
            ("open the log-in page", c.at("/login")),
            ("log in", checks.shows("You are logged in.")),
            ("open the place", c.at(_place(p, d).path)),
            ("save the note", c.wrote_note(_place(p, d), p["text"])),
        ),
        expert=_log_in_and_note,
        horizon=9,
        require_login=False,
    ),
)
"""Templates that change something in a few steps."""
