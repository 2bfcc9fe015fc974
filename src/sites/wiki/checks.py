"""What the encyclopedia's tasks are judged by, beside what all sites share (``sites.checks``).

Pages are addressed by canonical URLs, and parts of pages by the ids that the templates give them.
"""

from __future__ import annotations

from sites.checks import Evaluation, PagesOf, Step, has, pages
from sites.wiki.data import slug

_WIKI = PagesOf("wiki")
at, includes = _WIKI.at, _WIKI.includes

SEARCH_BOX: Step = ("see a search box", has("Search", role="searchbox"))
BEGINNING: tuple[Step, Step] = (("start at the encyclopedia", at("/*")), SEARCH_BOX)
"""Milestones that every search has behind it at its start."""


def on_reading_list(*titles: str) -> Evaluation:
    """Expect these articles on the reading list."""
    return pages(includes("/reading", "#reading", *titles))


def category_path(name: str) -> str:
    """The path of a category."""
    return f"/category/{slug(name)}"
