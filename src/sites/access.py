"""The way to the log-in page, for the sites whose pages need an account of their own.

Owns ``logged_in``. A site's own ``access`` module knows its session's type and raises the 404s and 403s.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.requests import Request
from starlette.responses import Response

from sites.rendering import see_other

Handler = Callable[[Request], Awaitable[Response]]


def logged_in(handler: Handler) -> Handler:
    """Send whoever is not logged in to the log-in page instead."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        state = request.state.session
        if state.me is None:
            state.flash("Please log in first.")
            return see_other("/login")
        return await handler(request)

    return guarded
