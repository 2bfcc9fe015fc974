"""Tasks about ways: times, routes, stops and comparisons."""

from __future__ import annotations

from sites.checks import UNANSWERABLE, Evaluation, Milestones, answer, both, has, no_answer
from sites.experts import Expert
from sites.map import sampling, skills
from sites.map.checks import at, ends_at, fields
from sites.map.data import MapData, Place
from sites.map.route_pages import route_path
from sites.map.sampling import MODES, ON_FOOT, travel_minutes
from sites.skills import choose, click, finish, noting
from sites.task_template import TaskTemplate, together

_METRES = r"\d+(?= m\b)|\d+\.\d(?= km)"


def _path(data: MapData, how: str, *labels: str) -> str:
    return route_path(MODES[how], [data.labelled(label) for label in labels])


class _Route(TaskTemplate):
    """A family: the route over the places that the parameters beside ``how`` name, in their order."""

    how: str

    @property
    def labels(self) -> list[str]:
        return [value for name, value in self.parameters.items() if name != "how"]

    def milestones(self, data: MapData) -> Milestones:
        stops = [f"Stop_{number}" for number in range(1, len(self.labels) - 1)]
        places = dict(zip(("From", *stops, "To"), self.labels, strict=True))
        return (
            ("open the directions", at("/directions*")),
            ("fill in all places", fields(**places)),
            ("choose how to travel", fields(**places, Travel=self.how)),
            ("see the route", at(_path(data, self.how, *self.labels))),
        )


class _Timed(_Route):
    """A family: how long does it take?"""

    def evaluation(self, data: MapData) -> Evaluation:
        return answer(str(travel_minutes(data, self.how, *self.labels)))

    def expert(self) -> Expert:
        seen = yield from skills.ask_route(self.how, *self.labels)
        if "There is no way" in seen.page_text:
            yield from finish(UNANSWERABLE)
        else:
            yield from finish(str(skills.minutes(seen)), _METRES)


class TravelTime(_Timed, name="map.travel_time", horizon=6):
    intent = "How many minutes does it take {how} from {start} to {end}?"
    how: str = together(sampling.way("start", "end"))
    start_: str
    end: str


class _Shown(_Route):
    """A family: show the route."""

    def evaluation(self, data: MapData) -> Evaluation:
        return ends_at(_path(data, self.how, *self.labels))

    def expert(self) -> Expert:
        yield from skills.ask_route(self.how, *self.labels)


class ShowRoute(_Shown, name="map.show_route", horizon=6):
    intent = "Show the route {how} from {start} to {end}."
    how: str = together(sampling.way("start", "end"))
    start_: str
    end: str


class NoRoute(TravelTime, name="map.no_route", horizon=6):
    how: str = together(sampling.to_the_island)

    def evaluation(self, data: MapData) -> Evaluation:
        return no_answer("Cars cannot get to this town.")


class WhichRoute(TaskTemplate, name="map.which_route", horizon=8):
    intent = "Show the route {how} from {first} to {second} in {town}."
    how: str = together(sampling.shared_names)
    first: str
    second: str
    town: str

    @property
    def labels(self) -> tuple[str, str]:
        return f"{self.first}, {self.town}", f"{self.second}, {self.town}"

    def evaluation(self, data: MapData) -> Evaluation:
        return ends_at(_path(data, self.how, *self.labels))

    def milestones(self, data: MapData) -> Milestones:
        first, second = self.labels
        return (
            ("fill in both places", fields(From=self.first, To=self.second)),
            ("be asked for the first place", both(at("/directions?*"), has(first, role="link"))),
            ("be asked for the second place", both(at("/directions?*"), has(second, role="link"))),
            ("see the route", at(_path(data, self.how, first, second))),
        )

    def expert(self) -> Expert:
        yield from skills.ask_route(self.how, self.first, self.second)
        for label in self.labels:
            yield from click(label, "link", rf"{label.split(', ')[0]}, [A-Z][a-z]+")


class StopTime(_Timed, name="map.stop_time", horizon=8, split="validation"):
    intent = "How many minutes does it take {how} from {start} over {stop} to {end}?"
    how: str = together(sampling.way("start", "stop", "end"))
    start_: str
    stop: str
    end: str


class CompareModes(TaskTemplate, name="map.compare_modes", horizon=8, split="test"):
    intent = "How many minutes longer does it take {slow} than {fast} from {start} to {end}?"
    slow: str = together(sampling.two_modes)
    fast: str
    start_: str
    end: str

    def evaluation(self, data: MapData) -> Evaluation:
        slow, fast = (travel_minutes(data, how, self.start_, self.end) for how in (self.slow, self.fast))
        return answer(str(slow - fast))

    def milestones(self, data: MapData) -> Milestones:
        return (
            ("open the directions", at("/directions*")),
            ("fill in both places", fields(From=self.start_, To=self.end)),
            (f"see the way {self.slow}", at(_path(data, self.slow, self.start_, self.end))),
            (f"see the way {self.fast}", at(_path(data, self.fast, self.start_, self.end))),
        )

    def expert(self) -> Expert:
        slow = yield from skills.ask_route(self.slow, self.start_, self.end)
        yield from noting(str(skills.minutes(slow)), choose("Travel", self.fast, skills.CHOICES))
        fast = yield from click("Show route", "button")
        yield from finish(str(skills.minutes(slow) - skills.minutes(fast)), r"\d+(?= min in all)")


class NearestOfThree(TaskTemplate, name="map.nearest_of_three", horizon=12, split="test"):
    intent = "Which is the shortest walk from {start}: {first}, {second} or {third}? Answer with its postcode."
    start_: str = together(sampling.three_ends)
    first: str
    second: str
    third: str

    @property
    def ends(self) -> tuple[str, str, str]:
        return self.first, self.second, self.third

    def nearest(self, data: MapData) -> Place:
        return data.labelled(min(self.ends, key=lambda end: travel_minutes(data, ON_FOOT, self.start_, end)))

    def evaluation(self, data: MapData) -> Evaluation:
        return answer(self.nearest(data).postcode)

    def milestones(self, data: MapData) -> Milestones:
        first, second, third = (at(_path(data, ON_FOOT, self.start_, end)) for end in self.ends)
        return (
            ("see the first way", first),
            ("see the second way", second),
            ("see the third way", third),
            ("open the nearest place", at(self.nearest(data).path)),
        )

    def expert(self) -> Expert:
        # Neither another way of travel nor a forgotten end need change which one is nearest.
        seen = yield from skills.ask_route(ON_FOOT, self.start_, self.first, rivals=None)
        times = {self.first: skills.minutes(seen)}
        for before, end in ((self.first, self.second), (self.second, self.third)):
            seen = yield from noting(f"{before} {times[before]}", skills.ask_other_end(end))
            times[end] = skills.minutes(seen)
        seen = yield from skills.open_place(min(times, key=lambda label: times[label]))
        yield from finish(skills.fact(seen, "Postcode"), r"\b0\d0 \d{4}\b|\d+\.\d{4}")


class ThreeStops(_Shown, name="map.three_stops", horizon=12):
    intent = "Show the route {how} from {start} over {first}, {second} and {third} to {end}."
    how: str = together(sampling.way("start", "first", "second", "third", "end"))
    start_: str
    first: str
    second: str
    third: str
    end: str
