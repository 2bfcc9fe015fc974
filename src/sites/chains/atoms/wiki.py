"""The encyclopedia's atoms: the reading list."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterator

from sites.chains.atom import Atom
from sites.checks import Check, Target
from sites.experts import Actions
from sites.skills import click
from sites.task_template import Parameters, drawn, together
from sites.wiki import sampling, skills
from sites.wiki.checks import includes
from sites.wiki.data import WikiData, slug


def _namesake(data: WikiData, rng: random.Random) -> Parameters:
    """Draw a place whose name other towns have too."""
    found = sampling.namesake(data, rng)
    return {"name": found["name"], "town": found["town"]}


class _ToRead(Atom):
    """Puts one article on the reading list."""

    @property
    @abstractmethod
    def article(self) -> str:
        """The article's title."""

    def path(self, data: WikiData) -> str:
        return f"/wiki/{slug(self.article)}/put"

    def things(self, data: WikiData) -> Iterator[str]:
        yield self.article

    def done(self, data: WikiData) -> Check:
        return skills.read_later.reached(self.article)

    def wanted(self, data: WikiData) -> tuple[Target, ...]:
        return (includes("/reading", "#reading", self.article),)


class ReadLater(_ToRead, name="wiki.read_later", length=2):
    wordings = (
        "Put the article {title} on the reading list",
        "Save the article {title} to read it later",
        "On the reading list, put the article {title}",
        "You want to read {title} later: put the article on the reading list",
        "Let the reading list have the article {title}",
        "Remember the article {title} on your reading list",
    )
    title: str = drawn(sampling.title)

    @property
    def article(self) -> str:
        return self.title

    def expert(self) -> Actions:
        return (yield from skills.read_later(self.title))


class ReadNamesake(_ToRead, name="wiki.read_namesake", length=3):
    wordings = (
        "Put the article about the {name} in {town} on the reading list",
        "In {town} there is a {name}: put the article about it on the reading list",
        "On the reading list, put the article about the {name} in {town}",
        "You want to read about the {name} in {town} later: put it on the reading list",
        "Let the reading list have the {name} in {town}",
        "Of the articles called {name}, put the one of {town} on the reading list",
    )
    name_: str = together(_namesake)
    town: str

    @property
    def article(self) -> str:
        return f"{self.name_} ({self.town})"

    def expert(self) -> Actions:
        yield from skills.look_up(self.name_)
        yield from click(self.article, "link", rf"{self.name_} \(\w+\)")
        return (yield from click("Read later", "button"))
