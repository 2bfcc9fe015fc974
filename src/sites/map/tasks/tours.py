"""Tasks about tours, the longest ones; one in the listed order or by other means takes another time."""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, answer, both, shows
from sites.experts import Expert
from sites.map import sampling, skills
from sites.map.checks import at, ends_at, holds, list_path, saved, tour_path
from sites.map.data import MapData
from sites.map.tasks.long import NewList
from sites.skills import finish
from sites.task_template import TaskTemplate, one_of, together


class TourWith(TaskTemplate, name="map.tour_with", horizon=11):
    intent = "Save {place} to the list {list}. How many minutes does the shortest tour of this list take {how} then?"
    place: str = together(sampling.tour_with)
    list: str
    how: str

    def evaluation(self, data: MapData) -> Evaluation:
        return answer(str(sampling.tour_minutes(data, self.list, self.place, self.how)))

    def milestones(self, data: MapData) -> Milestones:
        place = data.labelled(self.place)
        return (
            ("open the place", at(place.path)),
            ("save the place", saved(place, self.list)),
            ("plan a tour", at(f"{list_path(self.list)}/tour*")),
            ("see the shortest tour", skills.plan_tour.reached(self.list, self.how)),
        )

    def expert(self) -> Expert:
        yield from skills.save_place(self.place, self.list)
        seen = yield from skills.plan_tour(self.list, self.how)
        yield from finish(str(skills.minutes(seen)), r"\d+(?= min$)|\d+(?= m\b)")


class PlanTour(NewList, name="map.plan_tour", horizon=22):
    intent = "Make a list called {list} with {first}, {second} and {third}. Then show its shortest tour {how}."
    how: str = one_of(tuple(sampling.MODES))

    def evaluation(self, data: MapData) -> Evaluation:
        return ends_at(tour_path(self.list, self.how), holds(self.list, *self.places(data)))

    def milestones(self, data: MapData) -> Milestones:
        first, _, third = self.places(data)
        return (
            ("make the list", skills.make_list.reached(self.list)),
            ("save the first place", saved(first, self.list)),
            ("save the third place", saved(third, self.list)),
            ("see the shortest tour", both(skills.plan_tour.reached(self.list, self.how), shows("min in all"))),
        )

    def expert(self) -> Expert:
        yield from super().expert()
        yield from skills.plan_tour(self.list, self.how)
