"""Lists that are filtered and turned over: the part that all tables of the back office share.

Owns ``Grid`` and how a table's address is read. Invariant: links to other pages keep the filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode

from starlette.requests import Request

from sites.admin.dates import is_date
from sites.paging import Listing, listing
from sites.rendering import clean_text

ROWS = 5
"""Rows on one page of a table."""
ALL = "All"
"""The option of a filter that lets everything through."""
CHOOSE = "Choose"
"""What a dropdown of actions says before one is chosen."""
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Grid(Listing):
    """One page of a table, and how the table is filtered."""

    filters: Mapping[str, str]


def filters_of(request: Request, **defaults: str) -> dict[str, str]:
    """Return the values of the named filters in the address, with defaults for those that are absent."""
    return {name: clean_text(request.query_params.get(name, default)) for name, default in defaults.items()}


def grid(request: Request, rows: Sequence[R], filters: Mapping[str, str], per_page: int = ROWS) -> Grid:
    """Return the page of ``rows`` (already filtered) that the address asks for."""
    kept = {name: value for name, value in filters.items() if value}
    page = listing(request, rows, per_page, f"?{urlencode({**kept, 'page': ''})}")
    return Grid(page.items, page.total, page.number, page.pages, page.page_url, filters)


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
