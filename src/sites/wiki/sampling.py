"""Parameters of the encyclopedia's tasks: which articles, facts and categories an instruction is about.

Owns the draws. Invariants: every drawn task can be solved as its expert solves it and has one right answer;
parameters are JSON values and hold no answers.
"""

from __future__ import annotations

import random
from functools import lru_cache

from sites.kept import SEEDS_KEPT
from sites.task_template import Parameters
from sites.wiki.data import Article, WikiData, bare

_NEVER_SAID = {
    "person": ("Died", "Children", "School"),
    "place": ("Architect", "Visitors", "Cost"),
    "town": ("Area", "Rivers"),
    "material": ("Price", "Weight"),
}
"""Facts that an article of each subject may lack, most of them always."""
OPENED = "Opened"


@lru_cache(maxsize=SEEDS_KEPT)
def _described(data: WikiData) -> tuple[Article, ...]:
    """Return the articles that have facts and a title of their own."""
    return tuple(
        article
        for article in data.articles.values()
        if article.subject in _NEVER_SAID and len(data.namesakes(bare(article.title))) == 1
    )


@lru_cache(maxsize=SEEDS_KEPT)
def _shared(data: WikiData) -> tuple[Article, ...]:
    """Return the places whose names other towns have too."""
    return tuple(a for a in data.articles.values() if a.subject == "place" and len(data.namesakes(bare(a.title))) > 1)


def fact(data: WikiData, rng: random.Random) -> Parameters:
    """Draw an article and one of its facts."""
    article = rng.choice(_described(data))
    return {"fact": rng.choice(list(article.facts)), "title": article.title}


def missing_fact(data: WikiData, rng: random.Random) -> Parameters:
    """Draw an article and a fact that it lacks."""
    while True:
        article = rng.choice(_described(data))
        label = rng.choice(_NEVER_SAID[article.subject])
        if label not in article.facts:
            return {"fact": label, "title": article.title}


def namesake(data: WikiData, rng: random.Random) -> Parameters:
    """Draw a place whose name other towns have too, and a fact in which they differ."""
    article = rng.choice(_shared(data))
    return {"fact": rng.choice((OPENED, "Address")), "name": bare(article.title), "town": article.facts["Town"]}


def behind(data: WikiData, rng: random.Random) -> Parameters:
    """Draw an article that names a person, what they are to it, and a fact about the person."""
    roles = [(a, role) for a in _described(data) for role in ("Architect", "Mayor") if role in a.facts]
    article, role = rng.choice(roles)
    return {"fact": rng.choice(("Born", "Birthplace")), "role": role.lower(), "title": article.title}


def category(data: WikiData, rng: random.Random) -> str:
    """Draw a category of several articles."""
    return rng.choice([name for name, found in data.categories.items() if len(found) > 1])


def small_category(data: WikiData, rng: random.Random) -> str:
    """Draw a category of two or three places."""
    small = [
        name
        for name, found in data.categories.items()
        if 2 <= len(found) <= 3 and all(article.subject == "place" for article in found)
    ]
    return rng.choice(small)


def title(data: WikiData, rng: random.Random) -> str:
    """Draw the title of an article which that title finds."""
    return rng.choice(_described(data)).title


def two_titles(data: WikiData, rng: random.Random) -> Parameters:
    """Draw two different articles."""
    first, second = rng.sample(_described(data), 2)
    return {"first": first.title, "second": second.title}


def three_people(data: WikiData, rng: random.Random) -> Parameters:
    """Draw three people from different places."""
    people = [article for article in data.articles.values() if article.subject == "person"]
    while True:
        drawn = rng.sample(people, 3)
        if len({person.facts["Birthplace"] for person in drawn}) == 3:
            return {name: person.title for name, person in zip(("first", "second", "third"), drawn, strict=True)}
