"""Long lists cut into short pages.

Owns ``Listing``; knows nothing of what is listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a longer list: its items, how many in all, its number from 1, and how many pages there are.

    ``page_url`` is the address of a page but for its number, with which it ends.
    """

    items: Sequence[Any]
    total: int
    number: int
    pages: int
    page_url: str

    @property
    def previous(self) -> str | None:
        """The address of the page before this one."""
        return f"{self.page_url}{self.number - 1}" if self.number > 1 else None

    @property
    def next(self) -> str | None:
        """The address of the page after this one."""
        return f"{self.page_url}{self.number + 1}" if self.number < self.pages else None


def listing(request: Request, items: Sequence[Any], per_page: int, page_url: str = "") -> Listing:
    """Cut ``items`` to the page that the query asks for, clamped to what exists; links keep the rest of the query."""
    pages = max(1, -(-len(items) // per_page))
    wanted = request.query_params.get("page", "1")
    number = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 6 else 1
    number = min(max(number, 1), pages)
    kept = [(key, value) for key, value in request.query_params.multi_items() if key != "page"]
    page_url = page_url or f"{request.url.path}?{urlencode([*kept, ('page', '')])}"
    return Listing(items[(number - 1) * per_page : number * per_page], len(items), number, pages, page_url)
