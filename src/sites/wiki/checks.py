"""What the encyclopedia's tasks are judged by, beside what all sites share (``sites.checks``).

Pages are addressed by canonical URLs, and parts of pages by the ids that the templates give them.
"""

from __future__ import annotations

from sites.checks import Check, Evaluation, PagesOf, Step, both, has, pages, shows
from sites.wiki.data import Article, slug

_WIKI = PagesOf("wiki")
at, includes = _WIKI.at, _WIKI.includes


def on_reading_list(*articles: Article) -> Evaluation:
    """Expect these articles on the reading list."""
    return pages(includes("/reading", "#reading", *(article.title for article in articles)))


def category_path(name: str) -> str:
    """The path of a category."""
    return f"/category/{slug(name)}"


def beginning() -> tuple[Step, Step]:
    """Milestones that every search has behind it at its start."""
    return ("start at the encyclopedia", at("/*")), ("see a search box", has("Search", role="searchbox"))


def put(article: Article) -> Check:
    """The visitor has just put the article on the reading list."""
    return both(at(article.path), shows(f"{article.title} is on your reading list."))
