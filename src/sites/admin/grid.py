"""Lists that are filtered and turned over: the part that all tables of the back office share.

Owns ``Grid`` and how a table's address is read. Invariant: links to other pages keep the filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request

from sites.admin.dates import is_date
from sites.rendering import clean_text, page_number

ROWS = 5
"""Rows on one page of a table."""
ALL = "All"
"""The option of a filter that lets everything through."""
CHOOSE = "Choose"
"""What a dropdown of actions says before one is chosen."""
R = TypeVar("R")


@dataclass(frozen=True)
class Grid:
    """One page of a table: its rows, how many there are in all, where it stands, and how it is filtered."""

    rows: Sequence[Any]
    count: int
    page: int
    pages: int
    page_url: str
    filters: Mapping[str, str]


def filters_of(request: Request, **defaults: str) -> dict[str, str]:
    """Return the values of the named filters in the address, with defaults for those that are absent."""
    return {name: clean_text(request.query_params.get(name, default)) for name, default in defaults.items()}


def grid(request: Request, rows: Sequence[R], filters: Mapping[str, str], per_page: int = ROWS) -> Grid:
    """Return the page of ``rows`` (already filtered) that the address asks for."""
    page, pages = page_number(request, len(rows), per_page)
    query = urlencode({name: value for name, value in filters.items() if value})
    url = f"?{query}&page=" if query else "?page="
    return Grid(rows[(page - 1) * per_page : page * per_page], len(rows), page, pages, url, filters)


def contains(text: str, wanted: str) -> bool:
    """Whether a text filter lets ``text`` through: every word is in it, in any case."""
    folded = text.casefold()
    return all(word in folded for word in wanted.casefold().split())


def passes(value: str, wanted: str) -> bool:
    """Whether a dropdown filter lets ``value`` through."""
    return wanted in ("", ALL, value)


def in_period(date: str, start: str, end: str) -> bool:
    """Whether date filters let ``date`` through; an empty or unreadable end is open."""
    return (not is_date(start) or start <= date) and (not is_date(end) or date <= end)
