"""Tasks that change something in a few steps: saving, notes, reports, lists."""

from __future__ import annotations

from sites.access import PASSWORD
from sites.checks import Evaluation, Milestones, Step, both, has, pages
from sites.experts import Expert
from sites.map import sampling, skills
from sites.map.checks import (
    at,
    counts,
    equals,
    holds,
    includes,
    list_path,
    noted,
    opening,
    reported,
    saved,
    wrote_note,
)
from sites.map.data import ME, MapData, Place
from sites.map.words import DETAILS, LIST_NAMES, NOTES, PROBLEMS
from sites.task_template import TaskTemplate, drawn, one_of, together


def _opening(name: str) -> tuple[Step, Step]:
    return ("see the lists", at("/lists*")), ("open the list", skills.open_list.reached(name))


class SavePlace(TaskTemplate, name="map.save_place", horizon=5):
    intent = "Save {place} to the list {list}."
    place: str = drawn(sampling.place)
    list: str = drawn(sampling.some_list)

    def evaluation(self, data: MapData) -> Evaluation:
        return pages(holds(self.list, data.labelled(self.place)))

    def milestones(self, data: MapData) -> Milestones:
        place = data.labelled(self.place)
        return (
            *opening(place),
            ("choose the list", both(at(place.path), has("List", self.list))),
            ("save the place", saved(place, self.list)),
        )

    def expert(self) -> Expert:
        yield from skills.save_place(self.place, self.list)


class Note(TaskTemplate, name="map.note", horizon=5):
    intent = "Add the note {text} to {place}."
    text: str = one_of(NOTES)
    place: str = drawn(sampling.place)

    def evaluation(self, data: MapData) -> Evaluation:
        return pages(noted(data.labelled(self.place), self.text))

    def milestones(self, data: MapData) -> Milestones:
        place = data.labelled(self.place)
        return (
            *opening(place),
            ("write the note", both(at(place.path), has("Note", self.text))),
            ("save the note", wrote_note(place, self.text)),
        )

    def expert(self) -> Expert:
        yield from skills.note(self.place, self.text)


class Report(TaskTemplate, name="map.report", horizon=7):
    intent = "Report the error {problem} about {place} with the details: {details}"
    problem: str = one_of(PROBLEMS)
    place: str = drawn(sampling.place)
    details: str = one_of(DETAILS)

    def evaluation(self, data: MapData) -> Evaluation:
        return pages(reported(data.labelled(self.place), self.problem, self.details))

    def milestones(self, data: MapData) -> Milestones:
        path = data.labelled(self.place).path
        return (
            ("open the place", at(f"{path}*")),
            ("open the form", at(f"{path}/report")),
            ("choose the problem", both(at(f"{path}/report"), has("Problem", self.problem))),
            ("send the report", skills.report.reached(self.place, self.problem, self.details)),
        )

    def expert(self) -> Expert:
        yield from skills.report(self.place, self.problem, self.details)


class RenameList(TaskTemplate, name="map.rename_list", horizon=5):
    intent = "Rename the list {list} to {name}."
    list: str = drawn(sampling.some_list)
    name_: str = one_of(LIST_NAMES)

    def evaluation(self, data: MapData) -> Evaluation:
        named = equals(list_path(self.name_), "#name", self.name_)
        return pages(named, holds(self.name_, *(data.places[number] for number in data.lists[self.list])))

    def milestones(self, data: MapData) -> Milestones:
        return (
            *_opening(self.list),
            ("write the name", both(at(list_path(self.list)), has("Name", self.name_))),
            ("rename the list", skills.rename_list.reached(self.list, self.name_)),
        )

    def expert(self) -> Expert:
        yield from skills.rename_list(self.list, self.name_)


class ReplaceList(TaskTemplate, name="map.replace_list", horizon=7):
    intent = "Delete the list {list} and make a list called {name}."
    list: str = drawn(sampling.some_list)
    name_: str = one_of(LIST_NAMES)

    def evaluation(self, data: MapData) -> Evaluation:
        others = (name for name in data.lists if name != self.list)
        count = equals("/lists", "#count", f"{len(data.lists)} lists")
        return pages(includes("/lists", "#lists", *others, self.name_), count)

    def milestones(self, data: MapData) -> Milestones:
        return (
            *_opening(self.list),
            ("delete the list", skills.delete_list.reached(self.list)),
            ("make the new list", skills.add_list.reached(self.name_)),
        )

    def expert(self) -> Expert:
        yield from skills.delete_list(self.list)
        yield from skills.add_list(self.name_)


class MovePlace(TaskTemplate, name="map.move_place", horizon=8):
    intent = "Move {first} from the list {list} to the list {other}."
    list: str = together(sampling.one_listed)
    first: str
    other: str

    def evaluation(self, data: MapData) -> Evaluation:
        left = counts(self.list, len(data.lists[self.list]) - 1)
        return pages(left, holds(self.other, data.labelled(self.first)))

    def milestones(self, data: MapData) -> Milestones:
        place = data.labelled(self.first)
        return (
            ("open the list", skills.open_list.reached(self.list)),
            ("remove the place", skills.remove.reached(self.list, self.first)),
            ("open the place", at(f"{place.path}*")),
            ("save the place", saved(place, self.other)),
        )

    def expert(self) -> Expert:
        yield from skills.remove(self.list, self.first)
        yield from skills.save_place(self.first, self.other)


class SaveNearest(TaskTemplate, name="map.save_nearest", horizon=9, split="validation"):
    intent = "Find the {kind} nearest to {place} and save it to the list {list}."
    kind: str = together(sampling.nearest)
    place: str
    list: str = drawn(sampling.some_list)

    def found(self, data: MapData) -> Place:
        return data.nearby(data.labelled(self.place), self.kind)[0]

    def evaluation(self, data: MapData) -> Evaluation:
        return pages(holds(self.list, self.found(data)))

    def milestones(self, data: MapData) -> Milestones:
        path = data.labelled(self.place).path
        return (
            ("open the place", at(f"{path}*")),
            ("search nearby", at(f"{path}/nearby?kind={self.kind}*")),
            ("open the nearest place", at(self.found(data).path)),
            ("save the place", saved(self.found(data), self.list)),
        )

    def expert(self) -> Expert:
        # Another place may have the same nearest one, so that taking it would not be wrong.
        yield from skills.open_place(self.place, rivals=None)
        yield from skills.open_nearest(self.kind)
        yield from skills.save_to(self.list)


class LogInAndNote(TaskTemplate, name="map.log_in_and_note", horizon=9):
    require_login = False
    intent = "Log in as {user} with password {password} and add the note {text} to {place}."
    user: str = one_of((ME,))
    password: str = one_of((PASSWORD,))
    text: str = one_of(NOTES)
    place: str = drawn(sampling.place)

    def evaluation(self, data: MapData) -> Evaluation:
        return pages(noted(data.labelled(self.place), self.text))

    def milestones(self, data: MapData) -> Milestones:
        place = data.labelled(self.place)
        return (
            ("open the log-in page", at("/login")),
            ("log in", skills.log_in.reached(self.user, self.password)),
            ("open the place", at(place.path)),
            ("save the note", wrote_note(place, self.text)),
        )

    def expert(self) -> Expert:
        yield from skills.log_in(self.user, self.password)
        yield from skills.note(self.place, self.text)
