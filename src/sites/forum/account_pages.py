"""Pages about people: log-in and log-out, one's own profile, messages, blocking."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import logged_in, one_account
from sites.forms import Filling, form, refuse_if, show
from sites.forum import data as base
from sites.forum.access import known_user, session
from sites.rendering import render, see_other
from sites.site import Refused

MAX_BIO_CHARS = 200


@logged_in
@form("forum/profile.html", whole=True)
def profile(request: Request) -> Filling:
    """Show the form for one's own biography, or take it."""
    state = session(request)
    user = state.user(base.ME)
    sent = yield show({"bio": user.bio if user else ""})
    refuse_if((len(sent["bio"]) > MAX_BIO_CHARS, f"A bio has at most {MAX_BIO_CHARS} letters."))
    state.bio = sent["bio"]
    state.flash("Your profile was changed.")
    return f"/user/{state.me}"


@logged_in
async def inbox(request: Request) -> Response:
    """List the people one has exchanged messages with, latest first."""
    state = session(request)
    names = [m.receiver if m.sender == state.me else m.sender for m in reversed(state.messages)]
    latest = {name: state.conversation(name)[0] for name in names}
    return render(request, "forum/messages.html", latest=latest)


@logged_in
@form("forum/message.html")
def message(request: Request) -> Filling:
    """Show the messages exchanged with a user, or send one."""
    state, user = session(request), known_user(request)
    sent = yield show({"body": ""}, user=user, messages=state.conversation(user.name))
    if user.name == base.ME:
        raise Refused("You cannot write to yourself.")
    refuse_if((not sent["body"], "A message cannot be empty."))
    state.send(user.name, sent["body"])
    state.flash("Your message was sent.")
    return f"/user/{user.name}/message"


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
