"""Log-in and log-out.

There is one account, ``nora`` with the password ``secret``: the site is a training ground on the local
machine and keeps nothing worth protecting.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.map.access import session
from sites.map.data import ME
from sites.rendering import read_form, render, see_other

PASSWORD = "secret"


async def login(request: Request) -> Response:
    """Show the log-in form, or log in."""
    if request.method == "GET":
        return render(request, "map/login.html", username="", error="")
    form = await read_form(request)
    if form.get("username") != ME or form.get("password") != PASSWORD:
        page = {"username": form.get("username", ""), "error": "The user name or password is wrong."}
        return render(request, "map/login.html", status_code=422, **page)
    session(request).me = ME
    session(request).flash("You are logged in.")
    return see_other("/")


async def logout(request: Request) -> Response:
    """Log out; the session's lists stay."""
    session(request).me = None
    session(request).flash("You are logged out.")
    return see_other("/")


ROUTES = (
    Route("/login", login, methods=["GET", "POST"]),
    Route("/logout", logout, methods=["POST"]),
)
"""The map's pages about the account."""
