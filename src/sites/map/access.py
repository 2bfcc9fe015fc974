"""Who may open what on the map: the session of a request, and the things that its path names.

Owns the 404s and the way to the log-in page, so that page handlers need not repeat them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import cast

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sites.map.data import Place
from sites.map.state import MapState
from sites.rendering import see_other

Handler = Callable[[Request], Awaitable[Response]]


def session(request: Request) -> MapState:
    """Return the map's state in this request's session."""
    return cast(MapState, request.state.session)


def logged_in(handler: Handler) -> Handler:
    """Send whoever is not logged in to the log-in page instead."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        if session(request).me is None:
            session(request).flash("Please log in first.")
            return see_other("/login")
        return await handler(request)

    return guarded


def known_place(request: Request) -> Place:
    """Return the place that the path names, or raise 404."""
    place = session(request).data.places.get(request.path_params["place_id"])
    if place is None:
        raise HTTPException(404)
    return place


def known_list(request: Request) -> str:
    """Return the name of the list that the path means, or raise 404."""
    name = session(request).list_named(request.path_params["slug"])
    if name is None:
        raise HTTPException(404)
    return name
