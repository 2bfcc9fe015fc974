"""Pages about people: log-in and log-out of the one account, profiles, the status, the to-do list.

Owns their route handlers.
"""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import existing, logged_in, one_account
from sites.code import words
from sites.code.access import known_user, session
from sites.code.data import ME
from sites.forms import Filling, form, refuse_if, show
from sites.paging import listing
from sites.queries import chosen
from sites.rendering import read_form, render, see_other

TODOS_PER_PAGE = 6
TODO_KINDS = ("assigned", "mentioned", "review")
MAX_STATUS_CHARS = 60


def user_page(request: Request) -> Response:
    """Show a user's profile and own projects."""
    user = known_user(request)
    return render(request, "code/user.html", user=user, projects=session(request).projects(group=user.name))


@logged_in
@form("code/profile.html", whole=True)
def profile(request: Request) -> Filling:
    """Show the form for one's own profile, or take it."""
    state = session(request)
    user = existing(state.user(ME))
    sent = yield show({"email": user.email, "location": user.location, "company": user.company})
    state.change_profile(**sent)
    state.flash("Your profile was saved.")
    return f"/users/{ME}"


@logged_in
@form("code/status.html", whole=True)
def status(request: Request) -> Filling:
    """Show the form for one's status, or take it."""
    state = session(request)
    sent = yield show({"status": existing(state.user(ME)).status, "clear": ""}, times=words.CLEAR_AFTER)
    refuse_if((len(sent["status"]) > MAX_STATUS_CHARS, f"A status has at most {MAX_STATUS_CHARS} letters."))
    time = sent["clear"] if sent["clear"] in words.CLEAR_AFTER else ""
    state.change_profile(status=sent["status"], clear_after=time)
    state.flash("Your status was set.")
    return f"/users/{ME}"


@logged_in
async def todo_list(request: Request) -> Response:
    """Show the to-do items of a kind and author, pending or done."""
    state = session(request)
    authors = sorted({todo.author for todo in state.data.todos})
    kind, author = chosen(request, "type", TODO_KINDS, ""), chosen(request, "author", authors, "")
    show = chosen(request, "show", ("pending", "done"), "pending")
    todos = listing(request, state.todos(kind, author, show == "done"), TODOS_PER_PAGE)
    context: dict[str, Any] = {"todos": todos, "kind": kind, "author": author, "show": show, "authors": authors}
    return render(request, "code/todos.html", kinds=TODO_KINDS, here=request.url, **context)


@logged_in
async def finish_todo(request: Request) -> Response:
    """Mark a to-do item as done, and return to the list as it was filtered."""
    state, number = session(request), request.path_params["number"]
    if number not in {todo.number for todo in state.data.todos}:
        raise HTTPException(404)
    back = (await read_form(request)).get("back", "")
    state.done.add(number)
    state.flash("The item was marked as done.")
    return see_other(f"/todos?{back}" if back else "/todos")


ROUTES = (
    *one_account("code", ME),
    Route("/profile", profile, methods=["GET", "POST"]),
    Route("/status", status, methods=["GET", "POST"]),
    Route("/todos", todo_list),
    Route("/todos/{number:int}/done", finish_todo, methods=["POST"]),
    Route("/users/{user}", user_page),
)
"""Routes of this module."""
