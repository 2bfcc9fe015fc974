"""Who may open what in the back office: everything needs a log-in, which may run out.

Owns the way from a request to its session, the detour through the log-in page, and the 404s.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import wraps
from typing import TypeVar, cast
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from sites.access import existing
from sites.admin.state import AdminState
from sites.forms import Handler
from sites.overlay import Overlay
from sites.rendering import see_other

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


def admin(request: Request) -> AdminState:
    """Return the state of the session that this request belongs to."""
    return cast(AdminState, request.state.session)


def logged_in(handler: Handler) -> Handler:
    """Send whoever is not, or no longer, logged in to the log-in page, and back afterwards."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        state = admin(request)
        if state.user is None:
            state.flash("Log in first")
        elif not state.lets_through(_address(request), change=request.method != "GET"):
            state.flash("Your session has expired. Log in again")
        else:
            answer = await handler(request)
            state.showed(_address(request))
            return answer
        # A form that was sent is lost, as on most sites.
        wanted = _address(request) if request.method == "GET" else "/"
        return see_other(f"/login?{urlencode({'next': wanted})}")

    return guarded


def known(records: Overlay[K, R], key: K) -> R:
    """Return the record that a path names, or raise 404."""
    return existing(records.get(key))


def _address(request: Request) -> str:
    return f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
