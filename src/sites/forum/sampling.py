"""Parameters of the forum's tasks: which forum, thread, user and text an instruction is about.

Owns the draws. Invariants: every drawn task can be solved as its expert solves it (a thread that must
be found is on the first page of its search results) and is unambiguous.
"""

from __future__ import annotations

import random
from functools import lru_cache

from sites.forum import words
from sites.forum.data import ME, MY_SUBSCRIPTIONS, ForumData, Thread, bio_text
from sites.forum.listing_pages import THREADS_PER_PAGE
from sites.forum.state import SORTS, ForumState
from sites.forum.words import RANKS
from sites.kept import SEEDS_KEPT
from sites.task_template import Parameters

MIN_THREADS = 3
"""Threads a user has at least, when a task asks for the best of them."""


def forum(data: ForumData, rng: random.Random) -> str:
    """Draw a forum."""
    return rng.choice(sorted(data.forums))


def new_forum(data: ForumData, rng: random.Random) -> str:
    """Draw a forum that the user is not subscribed to."""
    return rng.choice(sorted(set(data.forums) - set(MY_SUBSCRIPTIONS)))


def two_forums(data: ForumData, rng: random.Random) -> Parameters:
    """Draw two different forums that the user is not subscribed to."""
    first, second = rng.sample(sorted(set(data.forums) - set(MY_SUBSCRIPTIONS)), 2)
    return {"first": first, "second": second}


def user(data: ForumData, rng: random.Random) -> str:
    """Draw another user."""
    return rng.choice(sorted(set(data.users) - {ME}))


def two_users(data: ForumData, rng: random.Random) -> Parameters:
    """Draw two different users."""
    first, second = rng.sample(sorted(set(data.users) - {ME}), 2)
    return {"first": first, "second": second}


def active_user(data: ForumData, rng: random.Random) -> str:
    """Draw another user who wrote several threads."""
    authors = sorted(set(data.threads_by_author) - {ME})
    return rng.choice([name for name in authors if len(data.threads_by_author[name]) >= MIN_THREADS])


def bio(data: ForumData, rng: random.Random) -> str:
    """Draw a biography."""
    return bio_text(rng.choice(words.BIO_LIKES), rng.choice(words.BIO_PLACES)).removesuffix(".")


def new_title(data: ForumData, rng: random.Random) -> str:
    """Draw a title for a new thread; no thread of the base data has it."""
    nouns = words.FORUM_TOPICS[rng.choice(sorted(words.FORUM_TOPICS))]
    return f"New {rng.choice(nouns)} {rng.choice(words.KINDS)}"


def search_words(data: ForumData, rng: random.Random) -> str:
    """Draw something to search for: a noun, alone or with a kind of thread."""
    *_, noun, kind = title(data, rng).lower().split()
    return rng.choice((noun, f"{noun} {kind}"))


def title(data: ForumData, rng: random.Random) -> str:
    """Draw the title of a thread that it alone identifies and finds."""
    return rng.choice(_findable(data)).title


def own_title(data: ForumData, rng: random.Random) -> str:
    """Draw the title of one of the user's own threads among those that their profile shows first."""
    newest = sorted(data.threads_by_author[ME], key=lambda t: -t.order)[:THREADS_PER_PAGE]
    return rng.choice(newest).title


def shared_title(data: ForumData, rng: random.Random) -> Parameters:
    """Draw title and forum of a thread whose title other forums have too."""
    thread = rng.choice([t for t in data.threads.values() if t.title in words.SHARED_TITLES and t.author != ME])
    return {"title": thread.title, "forum": thread.forum}


def shared_by_two(data: ForumData, rng: random.Random) -> Parameters:
    """Draw a title and two forums that have a thread of it, which others wrote."""
    while True:
        title = rng.choice(words.SHARED_TITLES)
        having = sorted(t.forum for t in data.threads.values() if t.title == title and t.author != ME)
        if len(having) > 1:
            first, second = rng.sample(having, 2)
            return {"title": title, "first": first, "second": second}


def ranked_by_other(data: ForumData, rng: random.Random) -> Parameters:
    """Draw a forum and a rank whose first thread somebody else wrote."""
    while True:
        name, rank = forum(data, rng), rng.choice(sorted(RANKS))
        if data.first_thread(name, rank).author != ME:
            return {"forum": name, "rank": rank}


def ranked_in_one_order(data: ForumData, rng: random.Random) -> Parameters:
    """Draw a rank and a new forum (``new_forum``) whose first thread is another one in each order."""
    while True:
        name, state = new_forum(data, rng), ForumState(data, None)
        if len({state.threads(sort, forum=name)[0].thread_id for sort in SORTS}) == len(SORTS):
            return {"forum": name, "rank": rng.choice(sorted(RANKS))}


def forum_of_two_authors(data: ForumData, rng: random.Random) -> str:
    """Draw a forum whose newest and top threads are by two other users."""
    while True:
        name = forum(data, rng)
        if len({ME, *(data.first_thread(name, rank).author for rank in RANKS)}) == 1 + len(RANKS):
            return name


@lru_cache(maxsize=SEEDS_KEPT)
def _findable(data: ForumData) -> tuple[Thread, ...]:
    """The threads whose own title finds them on the first page of results, the shared titles left out."""
    state = ForumState(data, ME)
    return tuple(
        thread
        for thread in data.threads.values()
        if thread.title not in words.SHARED_TITLES and thread in state.search(thread.title)[:THREADS_PER_PAGE]
    )
