"""Tasks over the encyclopedia and the map, which speak of the same places."""

from __future__ import annotations

import random
from typing import Self

from sites.across.skills import Data, go_to, on
from sites.checks import Evaluation, Milestones, either, pages
from sites.experts import Actions, Expert
from sites.forum import checks as forum
from sites.forum import sampling as topics
from sites.forum import skills as posting
from sites.map import checks as maps
from sites.map import sampling as places
from sites.map import skills as finding
from sites.map.data import Place
from sites.skills import noting
from sites.task_template import TaskTemplate, drawn
from sites.wiki import skills as reading
from sites.wiki.checks import at as wiki_at
from sites.wiki.data import Article, slug

_OPENED = "Opened"


def _article(data: Data, place: Place) -> Article | None:
    """Return the article of a place whose name no other place has, else None."""
    found: Article | None = data["wiki"].articles.get(place.name)
    return found if found is not None and found.facts.get("Town") == place.town and _OPENED in found.facts else None


def _described(data: Data, rng: random.Random) -> str:
    """Draw a place of which both sites speak and that is in no list."""
    return rng.choice([place for place in places.unsaved(data["map"]) if _article(data, place)]).label


def _year(data: Data, label: str) -> str:
    article = _article(data, data["map"].labelled(label))
    if article is None:
        raise ValueError(f"expected a place with an article of its own, found {label!r}")
    return article.facts[_OPENED]


def _look_up(label: str) -> Actions:
    return (yield from reading.look_up(label.split(", ")[0]))


def _article_path(label: str) -> str:
    return f"/wiki/{slug(label.split(', ')[0])}"


class NoteYear(TaskTemplate, name="across.note_year", horizon=7):
    sites = ("wiki", "map")
    intent = "In which year did {place} open, as the encyclopedia says? Write it on the map as a note on the place."
    place: str = drawn(_described)

    def evaluation(self, data: Data) -> Evaluation:
        return pages(maps.noted(data["map"].labelled(self.place), _year(data, self.place)))

    def milestones(self, data: Data) -> Milestones:
        place = data["map"].labelled(self.place)
        return (
            ("open the article", wiki_at(_article_path(self.place))),
            *maps.opening(place),
            ("save the note", maps.wrote_note(place, _year(data, self.place))),
        )

    def expert(self) -> Expert:
        seen = yield from _look_up(self.place)
        year = reading.fact(seen, _OPENED)
        yield from noting(year, go_to("map"))
        yield from finding.note(self.place, year)


class SaveOlder(TaskTemplate, name="across.save_older", horizon=8, split="test"):
    sites = ("wiki", "map")
    intent = "Which opened first, as the encyclopedia says: {first} or {second}? Save it to the map's list {list}."
    first: str
    second: str
    list: str = drawn(lambda data, rng: rng.choice(sorted(data["map"].lists)))

    @classmethod
    def sample(cls, data: Data, rng: random.Random) -> Self:
        first, second = _described(data, rng), _described(data, rng)
        while first.split(", ")[0] == second.split(", ")[0]:
            second = _described(data, rng)
        return cls.draw(data, rng, first=first, second=second)

    def older(self, data: Data) -> Place:
        found: Place = data["map"].labelled(min((self.first, self.second), key=lambda label: int(_year(data, label))))
        return found

    def evaluation(self, data: Data) -> Evaluation:
        return pages(maps.holds(self.list, self.older(data)))

    def milestones(self, data: Data) -> Milestones:
        place = self.older(data)
        return (
            ("open an article", either(*(wiki_at(_article_path(label)) for label in (self.first, self.second)))),
            *maps.opening(place),
            ("save the place", maps.saved(place, self.list)),
        )

    def expert(self) -> Expert:
        seen = yield from _look_up(self.first)
        first = int(reading.fact(seen, _OPENED))
        seen = yield from noting(f"{self.first} {first}", _look_up(self.second))
        older = self.first if first <= int(reading.fact(seen, _OPENED)) else self.second
        yield from noting(older, go_to("map"))
        yield from finding.save_place(older, self.list)


class TellYearAndPostcode(TaskTemplate, name="across.tell_year_and_postcode", horizon=11):
    sites = ("wiki", "map", "forum")
    intent = (
        "Find the year in which {place} opened in the encyclopedia, and its postcode on the map. Submit a thread to "
        "the forum {forum} with the title {title} and the text: YEAR, POSTCODE"
    )
    place: str = drawn(_described)
    forum: str = drawn(on("forum", topics.forum))
    title: str = drawn(on("forum", topics.new_title))

    def text(self, data: Data) -> str:
        return f"{_year(data, self.place)}, {data['map'].labelled(self.place).postcode}"

    def evaluation(self, data: Data) -> Evaluation:
        return pages(*forum.posted(self.forum, self.title, self.text(data)))

    def milestones(self, data: Data) -> Milestones:
        return (
            ("open the article", wiki_at(_article_path(self.place))),
            ("open the place", maps.at(f"{data['map'].labelled(self.place).path}*")),
            ("fill in the form", forum.filled_in(self.forum, self.title, self.text(data))),
            ("post the thread", posting.submit_thread.reached(self.forum, self.title, "")),
        )

    def expert(self) -> Expert:
        seen = yield from _look_up(self.place)
        year = reading.fact(seen, _OPENED)
        yield from noting(year, go_to("map"))
        seen = yield from finding.open_place(self.place)
        postcode = finding.fact(seen, "Postcode")
        yield from noting(postcode, go_to("forum"))
        yield from posting.submit_thread(self.forum, self.title, f"{year}, {postcode}")
