"""Who may see a page of the shop.

Owns the way from a request to the shop's state and the detour through the log-in page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import cast
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sites.rendering import see_other
from sites.shop.state import Customer, ShopState

Handler = Callable[[Request], Awaitable[Response]]


def shop(request: Request) -> ShopState:
    """Return the state of the session that this request belongs to."""
    return cast(ShopState, request.state.session)


def customer(request: Request) -> Customer:
    """Return who is logged in; for handlers behind ``login_first``."""
    found = shop(request).customer
    if found is None:
        raise HTTPException(403)
    return found


def login_first(handler: Handler) -> Handler:
    """Send visitors who are not logged in to the log-in page, and back afterwards."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        if shop(request).customer is not None:
            return await handler(request)
        shop(request).flash("Log in first")
        came_from = request.url.path if request.method == "GET" else "/"
        return see_other(f"/login?{urlencode({'next': came_from})}")

    return guarded
