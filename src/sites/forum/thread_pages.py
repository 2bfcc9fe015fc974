"""Pages about one thread: reading, voting, replying, submitting, editing, deleting, pinning.

Owns their route handlers. Invariants: only a valid form changes the state, and only an author
changes or deletes what it wrote; every change ends in a redirect with a flash message.
"""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import logged_in
from sites.forms import Filling, form, refuse_if, show
from sites.forum.access import known_thread, own_comment, own_thread, session
from sites.forum.data import Thread
from sites.forum.listing_pages import COMMENTS_PER_PAGE
from sites.paging import listing
from sites.rendering import read_form, render, see_other

MAX_TITLE_CHARS = 80


def thread_page(request: Request) -> Response:
    """Show a thread and its comments, latest first."""
    return render(request, "forum/thread.html", errors=(), **_shown(request, known_thread(request)))


def _shown(request: Request, thread: Thread) -> dict[str, Any]:
    comments = session(request).comments(thread.thread_id)
    page = listing(request, comments, COMMENTS_PER_PAGE)
    return show({"body": ""}, thread=thread, count=len(comments), comments=page)


@logged_in
async def vote(request: Request) -> Response:
    """Vote a thread up or down, or take the vote back."""
    thread = known_thread(request)
    direction = {"up": 1, "down": -1}.get((await read_form(request)).get("vote", ""))
    if direction is not None:
        session(request).vote(thread.thread_id, direction)
    return see_other(thread.path)


@logged_in
@form("forum/thread.html")
def reply(request: Request) -> Filling:
    """Add a comment."""
    state, thread = session(request), known_thread(request)
    sent = yield _shown(request, thread)
    refuse_if((not sent["body"], "A comment cannot be empty."))
    state.reply(thread.thread_id, sent["body"])
    state.flash("Your comment was posted.")
    return thread.path


@logged_in
@form("forum/edit_comment.html", whole=True)
def edit_comment(request: Request) -> Filling:
    """Show the form for one's own comment, or take the changed text."""
    state, (thread, comment) = session(request), own_comment(request)
    sent = yield show({"body": comment.body}, thread=thread)
    refuse_if((not sent["body"], "A comment cannot be empty."))
    state.edit_comment(comment, sent["body"])
    state.flash("Your comment was changed.")
    return thread.path


@logged_in
async def delete_comment(request: Request) -> Response:
    """Delete one's own comment."""
    thread, comment = own_comment(request)
    session(request).delete_comment(comment.comment_id)
    session(request).flash("Your comment was deleted.")
    return see_other(thread.path)


@logged_in
@form("forum/submit.html", whole=True)
def submit(request: Request) -> Filling:
    """Show the form for a new thread (or a crosspost), or take it."""
    state, query = session(request), request.query_params
    wanted = query.get("crosspost", "")
    source = state.thread(int(wanted)) if re.fullmatch(r"[0-9]{1,9}", wanted) else None
    fields = {"forum": query.get("forum", ""), "title": source.title if source else "", "body": ""}
    sent = yield show(fields, source=source)
    refuse_if((sent["forum"] not in state.data.forums, "Please choose a forum."), *_title_rules(sent["title"]))
    thread = state.submit(**sent, crossposted_from=source.forum if source else "")
    state.flash("Your thread was posted.")
    return thread.path


@logged_in
@form("forum/edit_thread.html", whole=True)
def edit_thread(request: Request) -> Filling:
    """Show the form for one's own thread, or take the changed title and text."""
    state, thread = session(request), own_thread(request)
    sent = yield show({"title": thread.title, "body": thread.body}, thread=thread)
    refuse_if(*_title_rules(sent["title"]))
    state.edit_thread(thread, **sent)
    state.flash("Your thread was changed.")
    return thread.path


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


def _title_rules(title: str) -> tuple[tuple[bool, str], tuple[bool, str]]:
    too_long = f"A title has at most {MAX_TITLE_CHARS} letters."
    return (not title, "A title is needed."), (len(title) > MAX_TITLE_CHARS, too_long)


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
