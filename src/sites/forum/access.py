"""Who may open what: the session of a request, and the things that its path names.

Owns the 404s and the way to the log-in page, so that page handlers need not repeat them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import cast

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sites.forum.data import Comment, Forum, Thread, User
from sites.forum.state import ForumState
from sites.rendering import see_other

Handler = Callable[[Request], Awaitable[Response]]


def session(request: Request) -> ForumState:
    """Return the forum's state in this request's session."""
    return cast(ForumState, request.state.session)


def logged_in(handler: Handler) -> Handler:
    """Send whoever is not logged in to the log-in page instead."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        if session(request).me is None:
            session(request).flash("Please log in first.")
            return see_other("/login")
        return await handler(request)

    return guarded


def known_forum(request: Request) -> Forum:
    """Return the forum that the path names, or raise 404."""
    forum = session(request).data.forums.get(request.path_params["forum"])
    if forum is None:
        raise HTTPException(404)
    return forum


def known_user(request: Request) -> User:
    """Return the user that the path names, or raise 404."""
    user = session(request).user(request.path_params["name"])
    if user is None:
        raise HTTPException(404)
    return user


def known_thread(request: Request) -> Thread:
    """Return the thread that the path names, or raise 404."""
    thread = session(request).thread(request.path_params["thread_id"])
    if thread is None or thread.forum != request.path_params["forum"]:
        raise HTTPException(404)
    return thread


def own_thread(request: Request) -> Thread:
    """Return the path's thread when the logged-in user wrote it, or raise 403."""
    thread = known_thread(request)
    if thread.author != session(request).me:
        raise HTTPException(403)
    return thread


def own_comment(request: Request) -> tuple[Thread, Comment]:
    """Return the path's thread and comment when the logged-in user wrote the comment, or raise 403."""
    thread = known_thread(request)
    comment = session(request).comment(request.path_params["comment_id"], thread.thread_id)
    if comment is None:
        raise HTTPException(404)
    if comment.author != session(request).me:
        raise HTTPException(403)
    return thread, comment
