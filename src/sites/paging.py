"""Long lists cut into short pages.

Owns ``Listing``; knows nothing of what is listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from sites.rendering import page_number


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a longer list: its items, how many in all, its number from 1, and links to its neighbours."""

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
        kept = [(key, value) for key, value in request.query_params.multi_items() if key != "page"]
        return f"{request.url.path}?{urlencode([*kept, ('page', page)])}" if 1 <= page <= pages else None

    shown = items[(number - 1) * per_page : number * per_page]
    return Listing(shown, len(items), number, pages, link(number - 1), link(number + 1))
