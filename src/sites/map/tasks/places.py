"""Tasks about places: their facts, and what is near them; some questions have no answer."""

from __future__ import annotations

from dataclasses import field

from sites.checks import UNANSWERABLE, Evaluation, Milestones, answer, both, has, no_answer
from sites.experts import Expert
from sites.map import sampling, skills
from sites.map.checks import SEARCH_BOX, at, opening
from sites.map.data import MapData, Place
from sites.map.place_pages import DEFAULT_WITHIN, WITHIN
from sites.skills import finish
from sites.task_template import TaskTemplate, drawn, together

_POSTCODES = r"\b\d{5}\b"
_COORDINATES = r"\d+\.\d{4}"
_HOURS = r"\d+:00"
_METRES = r"\d+(?= m\b)"


def _finding(place: Place) -> Milestones:
    return SEARCH_BOX, ("search", at("/search*")), *opening(place)


class PlaceFact(TaskTemplate, name="map.place_fact", horizon=3):
    intent = "What is the {fact} of {place}?"
    fact: str = together(sampling.fact)
    place: str

    def evaluation(self, data: MapData) -> Evaluation:
        place = data.labelled(self.place)
        address = f"{place.number} {place.street}"
        return answer(address if self.fact == "address" else str(getattr(place, self.fact)))

    def milestones(self, data: MapData) -> Milestones:
        return _finding(data.labelled(self.place))

    def expert(self) -> Expert:
        seen = yield from skills.open_place(self.place)
        rivals = _COORDINATES if self.fact == "postcode" else _POSTCODES
        yield from finish(skills.fact(seen, self.fact.capitalize()), rivals)


class UnknownFact(PlaceFact, name="map.unknown_fact", horizon=3):
    fact: str = together(sampling.unknown_fact)

    def evaluation(self, data: MapData) -> Evaluation:
        return no_answer("The map does not say this about the place.")

    def expert(self) -> Expert:
        seen = yield from skills.open_place(self.place, rivals=None)
        label = self.fact.capitalize()
        known = f"{label} |" in seen.text and skills.fact(seen, label) != skills.NOT_KNOWN
        yield from finish(skills.fact(seen, label) if known else UNANSWERABLE, _POSTCODES)


class Hours(TaskTemplate, name="map.hours", horizon=3):
    intent = "At what time does {place} {event} on {days}?"
    place: str = together(sampling.opening_hours)
    event: str
    days: str

    def _end(self, hours: str) -> str:
        return hours.split("-")[0 if self.event == "open" else 1]

    def evaluation(self, data: MapData) -> Evaluation:
        place = data.labelled(self.place)
        return answer(self._end(place.weekdays if self.days == "weekdays" else place.weekend))

    def milestones(self, data: MapData) -> Milestones:
        return _finding(data.labelled(self.place))

    def expert(self) -> Expert:
        seen = yield from skills.open_place(self.place, rivals=None)
        hours = skills.fact(seen, "Weekdays" if self.days == "weekdays" else "Weekend")
        yield from finish(self._end(hours), _HOURS)


class NoPlace(TaskTemplate, name="map.no_place", horizon=2):
    intent = "What is the address of {place}?"
    place: str = drawn(sampling.nowhere)

    def evaluation(self, data: MapData) -> Evaluation:
        return no_answer("Only other towns have a place of this name.")

    def milestones(self, data: MapData) -> Milestones:
        elsewhere = both(at("/search*"), has(self.place.split(", ")[0], role="link"))
        return (
            ("start on the map", at("/*")),
            SEARCH_BOX,
            ("search", at("/search*")),
            ("see that only other towns have such a place", elsewhere),
        )

    def expert(self) -> Expert:
        seen = yield from skills.search_for(self.place)
        if not skills.listed(seen, self.place):
            yield from finish(UNANSWERABLE, r"\d+ [A-Z][a-z]+ [A-Z][a-z]+")


class Nearest(TaskTemplate, name="map.nearest", horizon=6):
    intent = "Which {kind} is nearest to {place}?"
    kind: str = together(sampling.nearest)
    place: str
    distance: str = ""

    def near(self, data: MapData) -> list[Place]:
        return data.nearby(data.labelled(self.place), self.kind, WITHIN[self.distance or DEFAULT_WITHIN])

    def evaluation(self, data: MapData) -> Evaluation:
        return answer(self.near(data)[0].name)

    def milestones(self, data: MapData) -> Milestones:
        path = data.labelled(self.place).path
        within = (self.distance or DEFAULT_WITHIN).replace(" ", "+")
        return (
            ("open the place", at(f"{path}*")),
            ("open the nearby search", at(f"{path}/nearby*")),
            ("choose the kind", both(at(f"{path}/nearby*"), has("Kind", self.kind))),
            ("see what is near", at(f"{path}/nearby?kind={self.kind}&within={within}")),
        )

    def expert(self) -> Expert:
        yield from skills.open_place(self.place, rivals=None)
        seen = yield from skills.show_nearby(self.kind, self.distance, None)
        if skills.found_count(seen) == "0":
            yield from finish(UNANSWERABLE, r"\d+(?= found)")
        else:
            yield from finish(skills.nearest(seen), _METRES)


class CountWithin(Nearest, name="map.count_within", horizon=7):
    intent = "How many places of the kind {kind} are within {distance} of {place}?"
    kind: str = together(sampling.count_within)
    distance: str = field()

    def evaluation(self, data: MapData) -> Evaluation:
        return answer(str(len(self.near(data))))

    def expert(self) -> Expert:
        yield from skills.open_place(self.place, rivals=None)
        seen = yield from skills.show_nearby(self.kind, self.distance, None)
        yield from finish(skills.found_count(seen), _METRES)


class OneWithin(Nearest, name="map.one_within", horizon=7):
    intent = "Which {kind} is within {distance} of {place}?"
    kind: str = together(sampling.one_within)
    distance: str = field()


class NoneWithin(OneWithin, name="map.none_within", horizon=7):
    kind: str = together(sampling.none_within)

    def evaluation(self, data: MapData) -> Evaluation:
        return no_answer("There is no place of this kind within this distance.")
