"""Pages that list things: the front page, forums, one forum, search results, a user.

Owns their route handlers; they read the session's state and change nothing but subscriptions,
which belong to the forum page. Lists are cut into short pages.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import existing, logged_in
from sites.forum.access import known_forum, known_user, session
from sites.forum.state import SORTS, ForumState
from sites.paging import listing
from sites.queries import chosen, words_of
from sites.rendering import clean_text, render, see_other

THREADS_PER_PAGE = 5
FORUMS_PER_PAGE = 6
COMMENTS_PER_PAGE = 4


def chosen_sort(request: Request, default: str = "hot") -> str:
    """Return the order that the query asks for, the default when it names none that exists."""
    return chosen(request, "sort", SORTS, default)


def front_page(request: Request) -> Response:
    """Show the threads of all forums."""
    sort = chosen_sort(request)
    threads = listing(request, session(request).threads(sort), THREADS_PER_PAGE)
    return render(request, "forum/front.html", threads=threads, sort=sort)


def forum_list(request: Request) -> Response:
    """Show all forums by name, those that match a word, or those subscribed to.

    The search forgives mistyped names: it also shows the forums that begin with the same letter.
    """
    state = session(request)
    word = words_of(request, "find")
    mine = request.query_params.get("show") == "subscribed"
    found = [
        forum
        for name, forum in sorted(state.data.forums.items())
        if (word in name or name[0] == word[0]) and (not mine or name in state.subscriptions)
    ]
    return render(request, "forum/forums.html", forums=listing(request, found, FORUMS_PER_PAGE), word=word, mine=mine)


def forum_page(request: Request) -> Response:
    """Show one forum's threads."""
    forum = known_forum(request)
    sort = chosen_sort(request)
    threads = listing(request, session(request).threads(sort, forum=forum.name), THREADS_PER_PAGE)
    return render(request, "forum/forum.html", forum=forum, threads=threads, sort=sort)


@logged_in
async def subscription(request: Request) -> Response:
    """Subscribe to a forum, or unsubscribe where subscribed."""
    state, name = session(request), known_forum(request).name
    if name in state.subscriptions:
        state.subscriptions.remove(name)
        state.flash(f"You are no longer subscribed to {name}.")
    else:
        state.subscriptions.add(name)
        state.flash(f"You are now subscribed to {name}.")
    return see_other(f"/f/{name}")


def search(request: Request) -> Response:
    """Show users and threads that match the query, in all forums or in one."""
    state = session(request)
    query = clean_text(request.query_params.get("q", ""))[:80]
    forum = request.query_params.get("forum", "")
    everywhere = state.search(query)
    found = [thread for thread in everywhere if forum in ("", thread.forum)]
    return render(
        request,
        "forum/search.html",
        query=query,
        forum=forum,
        forums=sorted({thread.forum for thread in everywhere} | ({forum} & set(state.data.forums))),
        users=state.find_users(query),
        threads=listing(request, found, THREADS_PER_PAGE),
    )


def user_page(request: Request) -> Response:
    """Show a user's biography and threads."""
    state, user = session(request), known_user(request)
    sort = chosen_sort(request, "new")
    threads = listing(request, state.threads(sort, author=user.name), THREADS_PER_PAGE)
    pinned = _pinned(state, user.name)
    return render(request, "forum/user.html", user=user, threads=threads, sort=sort, pinned=pinned)


def user_comments(request: Request) -> Response:
    """Show a user's comments with the threads they belong to."""
    user = known_user(request)
    comments = listing(request, session(request).comments_by(user.name), COMMENTS_PER_PAGE)
    return render(request, "forum/user_comments.html", user=user, comments=comments)


def latest_thread(request: Request) -> Response:
    """Lead to the user's newest thread, an address that stays valid when more is posted."""
    threads = session(request).threads("new", author=known_user(request).name)
    return see_other(existing(next(iter(threads), None)).path)


def _pinned(state: ForumState, name: str) -> Any:
    thread = state.thread(state.pinned) if state.pinned is not None else None
    return thread if thread is not None and thread.author == name else None


ROUTES = (
    Route("/", front_page),
    Route("/forums", forum_list),
    Route("/search", search),
    Route("/f/{forum}", forum_page),
    Route("/f/{forum}/subscription", subscription, methods=["POST"]),
    Route("/user/{name}", user_page),
    Route("/user/{name}/comments", user_comments),
    Route("/user/{name}/latest", latest_thread),
)
"""The forum's list pages."""
