"""What a path names, logging in to the sites with one account, and the way to their log-in page.

Owns ``existing``, ``logged_in`` and the pages of ``one_account``. A site's own ``access`` module knows its session's
type and raises the 403s. These sites are a training ground on the local machine: the password is known and guards
nothing.
"""

from __future__ import annotations

from functools import wraps
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.forms import Filling, Handler, form, refuse_if, show
from sites.rendering import see_other

T = TypeVar("T")
PASSWORD = "secret"


def existing(found: T | None) -> T:
    """Return what a path names, or raise 404 where there is none."""
    if found is None:
        raise HTTPException(404)
    return found


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


def one_account(site: str, name: str) -> tuple[Route, Route]:
    """Return the pages on which the one account of a site, ``name`` with ``PASSWORD``, logs in and out."""

    @form(f"{site}/login.html")
    def login(request: Request) -> Filling:
        """Show the log-in form, or log in."""
        sent = yield show({"username": "", "password": ""})
        refuse_if(((sent["username"], sent["password"]) != (name, PASSWORD), "The user name or password is wrong."))
        request.state.session.me = name
        request.state.session.flash("You are logged in.")
        return "/"

    async def logout(request: Request) -> Response:
        """Log out; what the session changed stays."""
        request.state.session.me = None
        request.state.session.flash("You are logged out.")
        return see_other("/")

    return Route("/login", login, methods=["GET", "POST"]), Route("/logout", logout, methods=["POST"])
