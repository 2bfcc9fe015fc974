"""The encyclopedia's base data: articles with infoboxes, categories and histories.

Owns the record types and what may be asked of them. Invariants: everything here is immutable; titles are
unique; a link leads to an article that exists; what an article says of a place is what the map says.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

MAX_RESULTS = 24


@dataclass(frozen=True, slots=True)
class Revision:
    """One change of an article."""

    day: str
    editor: str
    comment: str


@dataclass(frozen=True, slots=True)
class Article:
    """One article; ``facts`` is its infobox, ``links`` the titles of articles that it leads to below the text."""

    title: str
    subject: str
    text: tuple[str, ...]
    facts: Mapping[str, str]
    links: tuple[str, ...]
    categories: tuple[str, ...]
    history: tuple[Revision, ...]

    @property
    def path(self) -> str:
        """The article's path on the site."""
        return f"/wiki/{slug(self.title)}"


def slug(title: str) -> str:
    """Return what an article or category is called in addresses."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def bare(title: str) -> str:
    """Return a title without the town in brackets that tells namesakes apart."""
    return title.split(" (")[0]


@dataclass(frozen=True, eq=False)
class WikiData:
    """All articles by their titles; a history is latest first."""

    articles: Mapping[str, Article]

    @cached_property
    def by_slug(self) -> Mapping[str, Article]:
        """Articles by what addresses call them."""
        return {slug(title): article for title, article in self.articles.items()}

    @cached_property
    def categories(self) -> Mapping[str, tuple[Article, ...]]:
        """Categories by name, with their articles by title."""
        found: dict[str, list[Article]] = defaultdict(list)
        for article in self.articles.values():
            for category in article.categories:
                found[category].append(article)
        return {name: tuple(sorted(found[name], key=lambda a: a.title)) for name in sorted(found)}

    def category_page(self, name: str, per_page: int) -> int:
        """Return the page, from 0, on which a category stands in the list of all."""
        return list(self.categories).index(name) // per_page

    def person_behind(self, title: str, role: str) -> Article:
        """Return the article about the person who is this (such as ``mayor``) to what ``title`` is about."""
        return self.articles[self.articles[title].facts[role.capitalize()]]

    def namesakes(self, name: str) -> list[Article]:
        """Return the articles of exactly this title, or those that share the name without brackets."""
        wanted = " ".join(name.lower().split())
        exact = [a for a in self.articles.values() if a.title.lower() == wanted]
        return exact or [a for a in self.articles.values() if bare(a.title).lower() == wanted]

    def search(self, query: str) -> list[Article]:
        """Return the articles whose titles have a word of ``query``, most words first."""
        words = _words(query)
        scored = [(len(words & _words(article.title)), article) for article in self.articles.values()]
        found = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], pair[1].title))
        return [article for _, article in found[:MAX_RESULTS]]

    def correction(self, query: str) -> str:
        """Return the title that a mistyped query may have meant, "" where none is near."""
        titles = {title.lower(): title for title in self.articles}
        near = difflib.get_close_matches(" ".join(query.lower().split()), titles, 1, 0.75)
        return titles[near[0]] if near and near[0] != query.lower() else ""


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))
