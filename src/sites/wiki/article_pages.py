"""The encyclopedia's pages: articles, their histories, categories, search, the reading list.

Owns the route handlers. A search for a title leads to its article; one for a name that several articles have,
to the question which was meant; any other, to a list.
"""

from __future__ import annotations

from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import existing
from sites.paging import listing
from sites.rendering import clean_text, render, see_other
from sites.wiki.data import Article, slug
from sites.wiki.state import WikiState

RESULTS_PER_PAGE, CATEGORIES_PER_PAGE, MEMBERS_PER_PAGE, CHANGES_PER_PAGE = 8, 12, 12, 5


def _state(request: Request) -> WikiState:
    return cast(WikiState, request.state.session)


def _article(request: Request) -> Article:
    return existing(_state(request).data.by_slug.get(request.path_params["slug"]))


async def home(request: Request) -> Response:
    """The front page."""
    return render(request, "wiki/home.html", count=len(_state(request).data.articles))


async def article(request: Request) -> Response:
    """An article: text, infobox, links, categories."""
    found, state = _article(request), _state(request)
    linked = [state.data.articles[title] for title in found.links]
    categories = [(name, slug(name)) for name in found.categories]
    paths = {title: state.data.articles[title].path for title in found.facts.values() if title in state.data.articles}
    page: dict[str, Any] = {"article": found, "linked": linked, "categories": categories, "paths": paths}
    return render(request, "wiki/article.html", **page)


async def history(request: Request) -> Response:
    """An article's changes, latest first."""
    found = _article(request)
    changes = listing(request, found.history, CHANGES_PER_PAGE)
    return render(request, "wiki/history.html", article=found, changes=changes)


async def search(request: Request) -> Response:
    """Lead to the article of a title, ask which was meant, or list what nearly fits."""
    data, query = _state(request).data, clean_text(request.query_params.get("q", ""))[:80]
    meant = data.namesakes(query)
    if len(meant) == 1:
        return see_other(meant[0].path)
    if meant:
        return render(request, "wiki/which.html", query=query, articles=meant)
    found = listing(request, data.search(query), RESULTS_PER_PAGE)
    near = data.correction(query)
    return render(request, "wiki/search.html", query=query, found=found, near=data.articles[near] if near else None)


async def categories(request: Request) -> Response:
    """All categories by name."""
    names = [(name, slug(name)) for name in _state(request).data.categories]
    return render(request, "wiki/categories.html", categories=listing(request, names, CATEGORIES_PER_PAGE))


async def category(request: Request) -> Response:
    """The articles of a category."""
    members = {slug(name): (name, found) for name, found in _state(request).data.categories.items()}
    name, found = existing(members.get(request.path_params["slug"]))
    year = min(change.day.split()[-1] for one in found for change in one.history)
    return render(request, "wiki/category.html", name=name, year=year, found=listing(request, found, MEMBERS_PER_PAGE))


async def reading(request: Request) -> Response:
    """The visitor's reading list."""
    state = _state(request)
    return render(request, "wiki/reading.html", articles=[state.data.articles[title] for title in state.reading])


async def put(request: Request) -> Response:
    """Put an article on the reading list."""
    found, state = _article(request), _state(request)
    if state.put(found.title):
        state.flash(f"{found.title} is on your reading list.")
    else:
        state.flash("Your reading list is full.")
    return see_other(found.path)


async def take(request: Request) -> Response:
    """Take an article off the reading list."""
    found, state = _article(request), _state(request)
    state.take(found.title)
    state.flash(f"{found.title} was taken off your reading list.")
    return see_other("/reading")


_ARTICLE = "/wiki/{slug}"

ROUTES = (
    Route("/", home),
    Route("/search", search),
    Route("/categories", categories),
    Route("/category/{slug}", category),
    Route("/reading", reading),
    Route(_ARTICLE, article),
    Route(f"{_ARTICLE}/history", history),
    Route(f"{_ARTICLE}/put", put, methods=["POST"]),
    Route(f"{_ARTICLE}/take", take, methods=["POST"]),
)
"""The encyclopedia's pages."""
