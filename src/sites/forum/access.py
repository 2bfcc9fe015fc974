"""Who may open what: the session of a request, and the things that its path names.

Owns the 404s, so that page handlers need not repeat them.
"""

from __future__ import annotations

from typing import cast

from starlette.exceptions import HTTPException
from starlette.requests import Request

from sites.access import existing
from sites.forum.data import Comment, Forum, Thread, User
from sites.forum.state import ForumState


def session(request: Request) -> ForumState:
    """Return the forum's state in this request's session."""
    return cast(ForumState, request.state.session)


def known_forum(request: Request) -> Forum:
    """Return the forum that the path names, or raise 404."""
    return existing(session(request).data.forums.get(request.path_params["forum"]))


def known_user(request: Request) -> User:
    """Return the user that the path names, or raise 404."""
    return existing(session(request).user(request.path_params["name"]))


def known_thread(request: Request) -> Thread:
    """Return the thread that the path names, or raise 404."""
    thread = session(request).thread(request.path_params["thread_id"])
    return existing(thread if thread and thread.forum == request.path_params["forum"] else None)


def own_thread(request: Request) -> Thread:
    """Return the path's thread when the logged-in user wrote it, or raise 403."""
    thread = known_thread(request)
    if thread.author != session(request).me:
        raise HTTPException(403)
    return thread


def own_comment(request: Request) -> tuple[Thread, Comment]:
    """Return the path's thread and comment when the logged-in user wrote the comment, or raise 403."""
    thread = known_thread(request)
    comment = existing(session(request).comment(request.path_params["comment_id"], thread.thread_id))
    if comment.author != session(request).me:
        raise HTTPException(403)
    return thread, comment
