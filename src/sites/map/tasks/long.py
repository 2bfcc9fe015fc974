"""Long tasks: several skills in a row, thirteen to seventeen steps, easily left unfinished."""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, pages
from sites.experts import Expert
from sites.map import sampling, skills
from sites.map.checks import at, counts, found, holds, noted, reported, saved, wrote_note
from sites.map.data import MapData, Place
from sites.map.words import DETAILS, LIST_NAMES, NOTES, PROBLEMS
from sites.task_template import TaskTemplate, drawn, one_of, together


class SaveThree(TaskTemplate, name="map.save_three", horizon=13):
    intent = "Save {first}, {second} and {third} to the list {list}."
    first: str = together(sampling.several("first", "second", "third"))
    second: str
    third: str
    list: str = drawn(sampling.some_list)

    def places(self, data: MapData) -> tuple[Place, Place, Place]:
        return data.labelled(self.first), data.labelled(self.second), data.labelled(self.third)

    def evaluation(self, data: MapData) -> Evaluation:
        return pages(holds(self.list, *self.places(data)))

    def milestones(self, data: MapData) -> Milestones:
        first, second, third = self.places(data)
        return (
            ("find the first place", found(first)),
            ("save the first place", saved(first, self.list)),
            ("save the second place", saved(second, self.list)),
            ("save the third place", saved(third, self.list)),
        )

    def expert(self) -> Expert:
        for label in (self.first, self.second, self.third):
            yield from skills.save_place(label, self.list)


class NewList(TaskTemplate, name="map.new_list", horizon=16):
    intent = "Make a list called {list} with {first}, {second} and {third}."
    list: str = one_of(LIST_NAMES)
    first: str = together(sampling.several("first", "second", "third"))
    second: str
    third: str

    def places(self, data: MapData) -> tuple[Place, Place, Place]:
        return data.labelled(self.first), data.labelled(self.second), data.labelled(self.third)

    def evaluation(self, data: MapData) -> Evaluation:
        return pages(holds(self.list, *self.places(data)), counts(self.list, 3))

    def milestones(self, data: MapData) -> Milestones:
        first, second, third = self.places(data)
        return (
            ("make the list", skills.make_list.reached(self.list)),
            ("save the first place", saved(first, self.list)),
            ("save the second place", saved(second, self.list)),
            ("save the third place", saved(third, self.list)),
        )

    def expert(self) -> Expert:
        yield from skills.make_list(self.list)
        for label in (self.first, self.second, self.third):
            yield from skills.save_place(label, self.list)


class SaveTwoNearest(TaskTemplate, name="map.save_two_nearest", horizon=17):
    intent = "Find the {first} and the {second} nearest to {place} and save both to the list {list}."
    first: str = together(sampling.two_nearest)
    second: str
    place: str
    list: str = drawn(sampling.some_list)

    def found(self, data: MapData) -> tuple[Place, Place]:
        centre = data.labelled(self.place)
        return data.nearby(centre, self.first)[0], data.nearby(centre, self.second)[0]

    def evaluation(self, data: MapData) -> Evaluation:
        return pages(holds(self.list, *self.found(data)))

    def milestones(self, data: MapData) -> Milestones:
        first, second = self.found(data)
        return (
            ("open the first place", at(first.path)),
            ("save the first place", saved(first, self.list)),
            ("open the second place", at(second.path)),
            ("save the second place", saved(second, self.list)),
        )

    def expert(self) -> Expert:
        for kind in (self.first, self.second):
            yield from skills.open_place(self.place, rivals=None)
            yield from skills.open_nearest(kind)
            yield from skills.save_to(self.list)


class ReportTwo(TaskTemplate, name="map.report_two", horizon=13):
    intent = "Report the error {problem} about {first} and about {second} with the details: {details}"
    first: str = together(sampling.several("first", "second"))
    second: str
    problem: str = one_of(PROBLEMS)
    details: str = one_of(DETAILS)

    def evaluation(self, data: MapData) -> Evaluation:
        return pages(
            reported(data.labelled(self.first), self.problem, self.details, "#reports"),
            reported(data.labelled(self.second), self.problem, self.details),
        )

    def milestones(self, data: MapData) -> Milestones:
        return (
            ("open the first place", at(data.labelled(self.first).path)),
            ("report the first error", skills.report.reached(self.first, self.problem, self.details)),
            ("open the second place", at(data.labelled(self.second).path)),
            ("report the second error", skills.report.reached(self.second, self.problem, self.details)),
        )

    def expert(self) -> Expert:
        yield from skills.report(self.first, self.problem, self.details)
        yield from skills.report(self.second, self.problem, self.details)


class MoveTwo(TaskTemplate, name="map.move_two", horizon=13, split="validation"):
    intent = "Move {first} and {second} from the list {list} to the list {other}."
    list: str = together(sampling.two_listed)
    first: str
    second: str
    other: str

    def evaluation(self, data: MapData) -> Evaluation:
        left = counts(self.list, len(data.lists[self.list]) - 2)
        return pages(left, holds(self.other, data.labelled(self.first), data.labelled(self.second)))

    def milestones(self, data: MapData) -> Milestones:
        return (
            ("remove the first place", skills.remove.reached(self.list, self.first)),
            ("remove the second place", skills.remove.reached(self.list, self.second)),
            ("save the first place", saved(data.labelled(self.first), self.other)),
            ("save the second place", saved(data.labelled(self.second), self.other)),
        )

    def expert(self) -> Expert:
        yield from skills.remove(self.list, self.first, self.second)
        yield from skills.save_place(self.first, self.other)
        yield from skills.save_place(self.second, self.other)


class NotesAndReport(TaskTemplate, name="map.notes_and_report", horizon=15, split="test"):
    intent = "Add the note {text} to {first} and {second}. Report the error {problem} about {third}: {details}"
    text: str = one_of(NOTES)
    first: str = together(sampling.several("first", "second", "third"))
    second: str
    third: str
    problem: str = one_of(PROBLEMS)
    details: str = one_of(DETAILS)

    def evaluation(self, data: MapData) -> Evaluation:
        return pages(
            noted(data.labelled(self.first), self.text),
            noted(data.labelled(self.second), self.text),
            reported(data.labelled(self.third), self.problem, self.details),
        )

    def milestones(self, data: MapData) -> Milestones:
        return (
            ("note the first place", wrote_note(data.labelled(self.first), self.text)),
            ("note the second place", wrote_note(data.labelled(self.second), self.text)),
            ("open the report", at(f"{data.labelled(self.third).path}/report")),
            ("send the report", skills.report.reached(self.third, self.problem, self.details)),
        )

    def expert(self) -> Expert:
        yield from skills.note(self.first, self.text)
        yield from skills.note(self.second, self.text)
        yield from skills.report(self.third, self.problem, self.details)


class DayTrip(TaskTemplate, name="map.day_trip", horizon=16, split="test"):
    intent = "Make a list called {list} with {place} and the {kind} nearest to it. Add the note {text} there."
    list: str = one_of(LIST_NAMES)
    kind: str = together(sampling.nearest)
    place: str
    text: str = one_of(NOTES)

    def places(self, data: MapData) -> tuple[Place, Place]:
        centre = data.labelled(self.place)
        return centre, data.nearby(centre, self.kind)[0]

    def evaluation(self, data: MapData) -> Evaluation:
        return pages(holds(self.list, *self.places(data)), noted(self.places(data)[1], self.text))

    def milestones(self, data: MapData) -> Milestones:
        place, nearest = self.places(data)
        return (
            ("make the list", skills.make_list.reached(self.list)),
            ("save the place", saved(place, self.list)),
            ("save the nearest place", saved(nearest, self.list)),
            ("write the note", wrote_note(nearest, self.text)),
        )

    def expert(self) -> Expert:
        yield from skills.make_list(self.list)
        yield from skills.save_place(self.place, self.list)
        yield from skills.open_nearest(self.kind)
        yield from skills.save_to(self.list)
        yield from skills.write_note(self.text)
