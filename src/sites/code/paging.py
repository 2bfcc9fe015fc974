"""Long lists cut into short pages, and choices read from the query.

Owns ``Listing``; knows nothing of what is listed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from sites.rendering import clean_text, page_number


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a longer list: its items, how many there are in all, and links to its neighbours."""

    items: Sequence[Any]
    total: int
    number: int
    pages: int
    previous: str | None
    next: str | None


def listing(request: Request, items: Sequence[Any], per_page: int) -> Listing:
    """Cut ``items`` to the page that the query asks for; the links keep the rest of the query."""
    number, pages = page_number(request, len(items), per_page)

    def link(page: int) -> str | None:
        kept = {**request.query_params, "page": str(page)}
        return f"{request.url.path}?{urlencode(kept)}" if 1 <= page <= pages else None

    shown = items[(number - 1) * per_page : number * per_page]
    return Listing(shown, len(items), number, pages, link(number - 1), link(number + 1))


def chosen(request: Request, name: str, choices: Collection[str], default: str) -> str:
    """Return the query's choice, the default when it names none that exists."""
    wanted = request.query_params.get(name, default)
    return wanted if wanted in choices else default


def words_of(request: Request, name: str) -> str:
    """Return the query's search words in lower case."""
    return clean_text(request.query_params.get(name, "")).lower()


def read_date(text: str) -> date | None:
    """Return the date that a date field sent, None for an empty one; raise ``ValueError`` for anything else."""
    return date.fromisoformat(text) if text else None
