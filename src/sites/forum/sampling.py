"""Parameters of the forum's tasks: which forum, thread, user and text an instruction is about.

Owns the draws. Invariants: every drawn task can be solved as its expert solves it (a thread that must
be found is on the first page of its search results) and is unambiguous; parameters are JSON values
and hold no answers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sites.forum import words
from sites.forum.data import ME, MY_SUBSCRIPTIONS, ForumData, Thread, bio_text
from sites.forum.listings import THREADS_PER_PAGE
from sites.forum.state import ForumState
from sites.old_form import Parameters

RANKS = {"newest": "new", "top": "top"}
"""What instructions call the first thread of a forum, and the order in which it is first."""

Draw = Callable[[ForumData, random.Random], Any]
MIN_THREADS = 3
"""Threads a user has at least, when a task asks for the best of them."""


Sampler = Callable[[ForumData, random.Random], Parameters]


def draw(**parts: Draw) -> Sampler:
    """Return a sampler that fills each parameter by its own draw."""

    def sample(data: ForumData, rng: random.Random) -> Parameters:
        return {name: part(data, rng) for name, part in parts.items()}

    return sample


def one_of(*values: str) -> Draw:
    """Draw one of these values."""
    return lambda data, rng: rng.choice(values)


def forum(data: ForumData, rng: random.Random) -> str:
    """Draw a forum."""
    return rng.choice(sorted(data.forums))


def new_forum(data: ForumData, rng: random.Random) -> str:
    """Draw a forum that the user is not subscribed to."""
    return rng.choice(sorted(set(data.forums) - set(MY_SUBSCRIPTIONS)))


def user(data: ForumData, rng: random.Random) -> str:
    """Draw another user."""
    return rng.choice(sorted(set(data.users) - {ME}))


def active_user(data: ForumData, rng: random.Random) -> str:
    """Draw another user who wrote several threads."""
    authors = sorted(set(data.threads_by_author) - {ME})
    return rng.choice([name for name in authors if len(data.threads_by_author[name]) >= MIN_THREADS])


def post(data: ForumData, rng: random.Random) -> str:
    """Draw a short text to write."""
    return rng.choice(words.POSTS)


def bio(data: ForumData, rng: random.Random) -> str:
    """Draw a biography."""
    return bio_text(rng.choice(words.BIO_LIKES), rng.choice(words.BIO_PLACES)).removesuffix(".")


def new_title(data: ForumData, rng: random.Random) -> str:
    """Draw a title for a new thread; no thread of the base data has it."""
    nouns = words.FORUM_TOPICS[rng.choice(sorted(words.FORUM_TOPICS))]
    return f"New {rng.choice(nouns)} {rng.choice(words.KINDS)}"


def search_words(data: ForumData, rng: random.Random) -> str:
    """Draw something to search for: a noun, alone or with a kind of thread."""
    thread = rng.choice(_findable(data))
    *_, noun, kind = thread.title.lower().split()
    return rng.choice((noun, f"{noun} {kind}"))


def thread_by_title(data: ForumData, rng: random.Random) -> Parameters:
    """Draw a thread that its title alone identifies and finds."""
    return {"title": rng.choice(_findable(data)).title}


def own_thread(data: ForumData, rng: random.Random) -> Parameters:
    """Draw one of the user's own threads among those that their profile shows first."""
    newest = sorted(data.threads_by_author[ME], key=lambda t: -t.order)[:THREADS_PER_PAGE]
    return {"title": rng.choice(newest).title}


def shared_title(data: ForumData, rng: random.Random) -> Parameters:
    """Draw a thread whose title other forums have too."""
    thread = rng.choice([t for t in data.threads.values() if t.title in words.SHARED_TITLES and t.author != ME])
    return {"title": thread.title, "forum": thread.forum}


def ranked_by_other(data: ForumData, rng: random.Random) -> Parameters:
    """Draw a forum and a rank whose first thread somebody else wrote."""
    while True:
        name, rank = forum(data, rng), rng.choice(sorted(RANKS))
        if first_thread(data, name, rank).author != ME:
            return {"forum": name, "rank": rank}


def two_forums(data: ForumData, rng: random.Random) -> Parameters:
    """Draw two different forums that the user is not subscribed to."""
    first, second = rng.sample(sorted(set(data.forums) - set(MY_SUBSCRIPTIONS)), 2)
    return {"first": first, "second": second}


def two_users(data: ForumData, rng: random.Random) -> Parameters:
    """Draw two different users."""
    first, second = rng.sample(sorted(set(data.users) - {ME}), 2)
    return {"first": first, "second": second}


def joined(*groups: Sampler) -> Sampler:
    """Return a sampler that merges the parameters of several."""

    def sample(data: ForumData, rng: random.Random) -> Parameters:
        return {name: value for group in groups for name, value in group(data, rng).items()}

    return sample


def first_thread(data: ForumData, name: str, rank: str) -> Thread:
    """Return the newest or top thread of a forum in the base data."""
    threads = data.threads_by_forum[name]
    return max(threads, key=lambda t: t.order if RANKS[rank] == "new" else t.points)


def best_thread(data: ForumData, author: str) -> Thread:
    """Return the author's thread with the most points in the base data."""
    return max(data.threads_by_author[author], key=lambda t: t.points)


def titled(data: ForumData, title: str) -> Thread:
    """Return the one thread of this title."""
    return next(t for t in data.threads.values() if t.title == title)


def shared_thread(data: ForumData, title: str, name: str) -> Thread:
    """Return the thread of this title in this forum."""
    return next(t for t in data.threads_by_forum[name] if t.title == title)


@lru_cache(maxsize=4)
def _findable(data: ForumData) -> tuple[Thread, ...]:
    """The threads whose own title finds them on the first page of results, the shared titles left out."""
    state = ForumState(data, ME)
    return tuple(
        thread
        for thread in data.threads.values()
        if thread.title not in words.SHARED_TITLES and thread in state.search(thread.title)[:THREADS_PER_PAGE]
    )
