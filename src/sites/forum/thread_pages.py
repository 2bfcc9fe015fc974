"""Pages about one thread: reading, voting, replying, submitting, editing, deleting, pinning.

Owns their route handlers. Invariants: only a valid form changes the state, and only an author
changes or deletes what it wrote; every change ends in a redirect with a flash message.
"""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import logged_in
from sites.forum.access import known_thread, own_comment, own_thread, session
from sites.forum.data import Thread
from sites.forum.listing_pages import COMMENTS_PER_PAGE
from sites.paging import listing
from sites.rendering import read_form, render, see_other

MAX_TITLE_CHARS = 80


def thread_page(request: Request) -> Response:
    """Show a thread and its comments, latest first."""
    return _thread_page(request, known_thread(request))


def _thread_page(request: Request, thread: Thread, error: str = "") -> Response:
    comments = session(request).comments(thread.thread_id)
    page = {"thread": thread, "count": len(comments), "comments": listing(request, comments, COMMENTS_PER_PAGE)}
    return render(request, "forum/thread.html", error=error, status_code=422 if error else 200, **page)


@logged_in
async def vote(request: Request) -> Response:
    """Vote a thread up or down, or take the vote back."""
    thread = known_thread(request)
    direction = {"up": 1, "down": -1}.get((await read_form(request)).get("vote", ""))
    if direction is not None:
        session(request).vote(thread.thread_id, direction)
    return see_other(thread.path)


@logged_in
async def reply(request: Request) -> Response:
    """Add a comment."""
    thread = known_thread(request)
    body = (await read_form(request)).get("body", "")
    if not body:
        return _thread_page(request, thread, "A comment cannot be empty.")
    session(request).reply(thread.thread_id, body)
    session(request).flash("Your comment was posted.")
    return see_other(thread.path)


@logged_in
async def edit_comment(request: Request) -> Response:
    """Show the form for one's own comment, or take the changed text."""
    thread, comment = own_comment(request)
    if request.method == "GET":
        return render(request, "forum/edit_comment.html", thread=thread, body=comment.body, error="")
    body = (await read_form(request)).get("body", "")
    if not body:
        error = "A comment cannot be empty."
        return render(request, "forum/edit_comment.html", thread=thread, body="", error=error, status_code=422)
    session(request).edit_comment(comment, body)
    session(request).flash("Your comment was changed.")
    return see_other(thread.path)


@logged_in
async def delete_comment(request: Request) -> Response:
    """Delete one's own comment."""
    thread, comment = own_comment(request)
    session(request).delete_comment(comment.comment_id)
    session(request).flash("Your comment was deleted.")
    return see_other(thread.path)


@logged_in
async def submit(request: Request) -> Response:
    """Show the form for a new thread (or a crosspost), or take it."""
    state = session(request)
    wanted = request.query_params.get("crosspost", "")
    source = state.thread(int(wanted)) if re.fullmatch(r"[0-9]{1,9}", wanted) else None
    if request.method == "GET":
        fields = {"forum": request.query_params.get("forum", ""), "title": source.title if source else "", "body": ""}
        return render(request, "forum/submit.html", fields=fields, source=source, errors=[])
    form = await read_form(request)
    fields = {name: form.get(name, "") for name in ("forum", "title", "body")}
    errors = []
    if fields["forum"] not in state.data.forums:
        errors.append("Please choose a forum.")
    errors += _title_errors(fields["title"])
    if errors:
        return render(request, "forum/submit.html", fields=fields, source=source, errors=errors, status_code=422)
    thread = state.submit(**fields, crossposted_from=source.forum if source else "")
    state.flash("Your thread was posted.")
    return see_other(thread.path)


@logged_in
async def edit_thread(request: Request) -> Response:
    """Show the form for one's own thread, or take the changed title and text."""
    thread = own_thread(request)
    if request.method == "GET":
        fields = {"title": thread.title, "body": thread.body}
        return render(request, "forum/edit_thread.html", thread=thread, fields=fields, errors=[])
    form = await read_form(request)
    fields = {name: form.get(name, "") for name in ("title", "body")}
    errors = _title_errors(fields["title"])
    if errors:
        page = {"thread": thread, "fields": fields, "errors": errors}
        return render(request, "forum/edit_thread.html", status_code=422, **page)
    session(request).edit_thread(thread, **fields)
    session(request).flash("Your thread was changed.")
    return see_other(thread.path)


@logged_in
async def delete_thread(request: Request) -> Response:
    """Delete one's own thread."""
    thread = own_thread(request)
    session(request).delete_thread(thread.thread_id)
    session(request).flash("Your thread was deleted.")
    return see_other(f"/f/{thread.forum}")


@logged_in
async def pin(request: Request) -> Response:
    """Pin one's own thread to one's profile, or unpin it."""
    state, thread = session(request), own_thread(request)
    state.pinned = None if state.pinned == thread.thread_id else thread.thread_id
    state.flash("Your thread is pinned." if state.pinned else "Your thread is no longer pinned.")
    return see_other(thread.path)


def _title_errors(title: str) -> list[str]:
    if not title:
        return ["A title is needed."]
    return [f"A title has at most {MAX_TITLE_CHARS} letters."] if len(title) > MAX_TITLE_CHARS else []


_THREAD = "/f/{forum}/{thread_id:int}"
_COMMENT = _THREAD + "/comment/{comment_id:int}"

ROUTES = (
    Route("/submit", submit, methods=["GET", "POST"]),
    Route(_THREAD, thread_page),
    Route(f"{_THREAD}/vote", vote, methods=["POST"]),
    Route(f"{_THREAD}/reply", reply, methods=["POST"]),
    Route(f"{_THREAD}/edit", edit_thread, methods=["GET", "POST"]),
    Route(f"{_THREAD}/delete", delete_thread, methods=["POST"]),
    Route(f"{_THREAD}/pin", pin, methods=["POST"]),
    Route(f"{_COMMENT}/edit", edit_comment, methods=["GET", "POST"]),
    Route(f"{_COMMENT}/delete", delete_comment, methods=["POST"]),
)
"""The forum's thread pages."""
