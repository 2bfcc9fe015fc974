"""Pages about people: log-in and log-out, one's own profile, messages, blocking."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import logged_in, one_account
from sites.forum import data as base
from sites.forum.access import known_user, session
from sites.forum.data import User
from sites.rendering import read_form, render, see_other

MAX_BIO_CHARS = 200


@logged_in
async def profile(request: Request) -> Response:
    """Show the form for one's own biography, or take it."""
    state = session(request)
    if request.method == "GET":
        user = state.user(base.ME)
        return render(request, "forum/profile.html", bio=user.bio if user else "", error="")
    bio = (await read_form(request)).get("bio", "")
    if len(bio) > MAX_BIO_CHARS:
        error = f"A bio has at most {MAX_BIO_CHARS} letters."
        return render(request, "forum/profile.html", bio=bio, error=error, status_code=422)
    state.bio = bio
    state.flash("Your profile was changed.")
    return see_other(f"/user/{state.me}")


@logged_in
async def inbox(request: Request) -> Response:
    """List the people one has exchanged messages with, latest first."""
    state = session(request)
    names = [m.receiver if m.sender == state.me else m.sender for m in reversed(state.messages)]
    latest = {name: state.conversation(name)[0] for name in names}
    return render(request, "forum/messages.html", latest=latest)


@logged_in
async def message(request: Request) -> Response:
    """Show the messages exchanged with a user, or send one."""
    user = known_user(request)
    if request.method == "GET":
        return _conversation(request, user)
    body = (await read_form(request)).get("body", "")
    if user.name == base.ME:
        return _conversation(request, user, "You cannot write to yourself.")
    if not body:
        return _conversation(request, user, "A message cannot be empty.")
    session(request).send(user.name, body)
    session(request).flash("Your message was sent.")
    return see_other(f"/user/{user.name}/message")


def _conversation(request: Request, user: User, error: str = "") -> Response:
    messages = session(request).conversation(user.name)
    status = 422 if error else 200
    return render(request, "forum/message.html", user=user, messages=messages, error=error, status_code=status)


@logged_in
async def block(request: Request) -> Response:
    """Block a user, whose posts then are hidden, or unblock."""
    state, name = session(request), known_user(request).name
    if name == state.me:
        state.flash("You cannot block yourself.")
    elif name in state.blocked:
        state.blocked.remove(name)
        state.flash(f"You no longer block {name}.")
    else:
        state.blocked.add(name)
        state.flash(f"You blocked {name}.")
    return see_other(f"/user/{name}")


ROUTES = (
    *one_account("forum", base.ME),
    Route("/profile", profile, methods=["GET", "POST"]),
    Route("/messages", inbox),
    Route("/user/{name}/message", message, methods=["GET", "POST"]),
    Route("/user/{name}/block", block, methods=["POST"]),
)
"""The forum's pages about people."""
