"""Task templates over the encyclopedia and the map, which speak of the same places.

Owns what is read in one and written in the other, or told on the forum.
"""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.across.skills import Data, go_to
from sites.experts import Actions
from sites.forum import checks as forum
from sites.forum import sampling as topics
from sites.forum import skills as posting
from sites.map import checks as maps
from sites.map import sampling as places
from sites.map import skills as finding
from sites.map.data import Place
from sites.old_form import Expert, Parameters, TaskTemplate, noting
from sites.skills import finish
from sites.wiki import checks as wiki
from sites.wiki import skills as reading
from sites.wiki.data import Article, slug

_OPENED = "Opened"


def _article(data: Data, place: Place) -> Article | None:
    """Return the article of a place whose name no other place has, else None."""
    found: Article | None = data["wiki"].articles.get(place.name)
    return found if found is not None and found.facts.get("Town") == place.town and _OPENED in found.facts else None


def _described(data: Data, rng: random.Random) -> Place:
    """Draw a place of which both sites speak and that is in no list."""
    return rng.choice([place for place in places.unsaved(data["map"]) if _article(data, place)])


def _year(data: Data, label: str) -> str:
    article = _article(data, data["map"].labelled(label))
    if article is None:
        raise ValueError(f"expected a place with an article of its own, found {label!r}")
    return article.facts[_OPENED]


def _read_year(label: str) -> Actions:
    return (yield from reading.look_up(label.split(", ")[0]))


def _article_open(label: str) -> checks.Check:
    return wiki.at(f"/wiki/{slug(label.split(', ')[0])}")


def _sample_note(data: Data, rng: random.Random) -> Parameters:
    return {"place": _described(data, rng).label}


def _note_year(task: Task) -> Expert:
    label = task.parameters["place"]
    seen = yield from _read_year(label)
    year = reading.fact(seen, _OPENED)
    yield from noting(year, go_to("map"))
    yield from finding.note(label, year)
    yield from finish()


def _note_milestones(p: Parameters, data: Data) -> checks.Milestones:
    place = data["map"].labelled(p["place"])
    return checks.milestones(
        ("open the article", _article_open(p["place"])),
        *maps.opening(place),
        ("save the note", maps.wrote_note(place, _year(data, p["place"]))),
    )


def _sample_older(data: Data, rng: random.Random) -> Parameters:
    first, second = _described(data, rng), _described(data, rng)
    while first.name == second.name:
        second = _described(data, rng)
    return {"first": first.label, "second": second.label, "list": rng.choice(sorted(data["map"].lists))}


def _older(p: Parameters, data: Data) -> Place:
    return data["map"].labelled(min((p["first"], p["second"]), key=lambda label: int(_year(data, label))))


def _save_older(task: Task) -> Expert:
    p = task.parameters
    seen = yield from _read_year(p["first"])
    first = int(reading.fact(seen, _OPENED))
    seen = yield from noting(f"{p['first']} {first}", _read_year(p["second"]))
    older = p["first"] if first <= int(reading.fact(seen, _OPENED)) else p["second"]
    yield from noting(older, go_to("map"))
    yield from finding.save_place(older, p["list"])
    yield from finish()


def _older_milestones(p: Parameters, data: Data) -> checks.Milestones:
    place = _older(p, data)
    return checks.milestones(
        ("open an article", checks.either(_article_open(p["first"]), _article_open(p["second"]))),
        *maps.opening(place),
        ("save the place", maps.saved(place, p["list"])),
    )


def _sample_tell(data: Data, rng: random.Random) -> Parameters:
    return {
        "place": _described(data, rng).label,
        "forum": topics.forum(data["forum"], rng),
        "title": topics.new_title(data["forum"], rng),
    }


def _told(p: Parameters, data: Data) -> str:
    return f"{_year(data, p['place'])}, {data['map'].labelled(p['place']).postcode}"


def _tell(task: Task) -> Expert:
    p = task.parameters
    seen = yield from _read_year(p["place"])
    year = reading.fact(seen, _OPENED)
    yield from noting(year, go_to("map"))
    seen = yield from finding.open_place(p["place"])
    postcode = finding.fact(seen, "Postcode")
    yield from noting(postcode, go_to("forum"))
    yield from posting.submit_thread(p["forum"], p["title"], f"{year}, {postcode}")
    yield from finish()


TEMPLATES = (
    TaskTemplate(
        name="across.note_year",
        site="wiki",
        also=("map",),
        intent="In which year did {place} open, as the encyclopedia says? Write it on the map as a note on the place.",
        sample=_sample_note,
        evaluation=lambda p, d: checks.pages(maps.noted(d["map"].labelled(p["place"]), _year(d, p["place"]))),
        milestones=_note_milestones,
        expert=_note_year,
        horizon=7,
    ),
    TaskTemplate(
        name="across.save_older",
        site="wiki",
        also=("map",),
        intent="Which opened first, as the encyclopedia says: {first} or {second}? Save it to the map's list {list}.",
        sample=_sample_older,
        evaluation=lambda p, d: checks.pages(maps.holds(p["list"], _older(p, d))),
        milestones=_older_milestones,
        expert=_save_older,
        horizon=8,
        split="test",
    ),
    TaskTemplate(
        name="across.tell_year_and_postcode",
        site="wiki",
        also=("map", "forum"),
        intent="Find the year in which {place} opened in the encyclopedia, and its postcode on the map. Submit a "
        "thread to the forum {forum} with the title {title} and the text: YEAR, POSTCODE",
        sample=_sample_tell,
        evaluation=lambda p, d: checks.pages(*forum.posted(p["forum"], p["title"], _told(p, d))),
        milestones=lambda p, d: checks.milestones(
            ("open the article", _article_open(p["place"])),
            ("open the place", maps.at(f"{d['map'].labelled(p['place']).path}*")),
            ("fill in the form", forum.filled_in(p["forum"], p["title"], _told(p, d))),
            ("post the thread", posting.submit_thread.reached(p["forum"], p["title"], "")),
        ),
        expert=_tell,
        horizon=11,
    ),
)
"""Templates over the encyclopedia and the map."""
