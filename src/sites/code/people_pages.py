"""Pages about people: log-in and log-out of the one account, profiles, the status, the to-do list.

Owns their route handlers.
"""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import logged_in, one_account
from sites.code import words
from sites.code.access import known_user, session
from sites.code.data import ME
from sites.paging import listing
from sites.queries import chosen
from sites.rendering import form_page, read_form, render, see_other

TODOS_PER_PAGE = 6
TODO_KINDS = ("assigned", "mentioned", "review")
MAX_STATUS_CHARS = 60
_PROFILE_FIELDS = ("email", "location", "company")


def user_page(request: Request) -> Response:
    """Show a user's profile and own projects."""
    user = known_user(request)
    return render(request, "code/user.html", user=user, projects=session(request).projects(group=user.name))


@logged_in
async def profile(request: Request) -> Response:
    """Show the form for one's own profile, or take it."""
    state = session(request)
    if request.method == "POST":
        form = await read_form(request)
        state.change_profile(**{name: form.get(name, "") for name in _PROFILE_FIELDS})
        state.flash("Your profile was saved.")
        return see_other(f"/users/{ME}")
    return form_page(request, "code/profile.html", user=state.user(ME))


@logged_in
async def status(request: Request) -> Response:
    """Show the form for one's status, or take it."""
    state = session(request)
    if request.method == "GET":
        user = state.user(ME)
        text = user.status if user else ""
        return form_page(request, "code/status.html", text=text, times=words.CLEAR_AFTER)
    form = await read_form(request)
    text, time = form.get("status", ""), form.get("clear", "")
    if len(text) > MAX_STATUS_CHARS:
        errors = [f"A status has at most {MAX_STATUS_CHARS} letters."]
        return form_page(request, "code/status.html", errors, text=text, times=words.CLEAR_AFTER)
    state.change_profile(status=text, clear_after=time if time in words.CLEAR_AFTER else "")
    state.flash("Your status was set.")
    return see_other(f"/users/{ME}")


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
