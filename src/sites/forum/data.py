"""The forum's base data: forums, users, threads and comments, generated from a seed.

Owns the record types and their generation. Invariants: everything here is immutable and shared by
all sessions (``sites.forum.state`` lays one session's changes over it); ids, points and dates are
functions of the seed alone; no two threads share their points or their order of posting, so that
"top" and "newest" always name one thread.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from sites.forum import words

ME = "maya"
"""The user whom a logged-in session belongs to."""

TODAY = date(2024, 6, 1)
"""The forum's clock stands still on this day."""

MY_SUBSCRIPTIONS = ("art", "movies", "travel")
FIRST_THREAD_ID = 100
FIRST_SESSION_ID = 10_001
"""Threads and comments that a session adds are numbered from here."""


@dataclass(frozen=True, slots=True)
class Forum:
    """One forum: a one-word name, a line about it, and how many people are subscribed."""

    name: str
    about: str
    members: int


@dataclass(frozen=True, slots=True)
class User:
    """One user with a biography."""

    name: str
    bio: str


@dataclass(frozen=True, slots=True)
class Thread:
    """One thread; ``order`` grows with the time of posting and ``points`` excludes the session's own vote."""

    thread_id: int
    forum: str
    title: str
    body: str
    author: str
    points: int
    day: date
    order: int
    crossposted_from: str = ""

    @property
    def path(self) -> str:
        """The thread's path on the site."""
        return f"/f/{self.forum}/{self.thread_id}"


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment on a thread; ``order`` grows with the time of posting."""

    comment_id: int
    thread_id: int
    author: str
    body: str
    day: date
    order: int


@dataclass(frozen=True, eq=False)
class ForumData:
    """All base data, indexed for reading; nobody may change it.

    ``word_weights`` maps each lower-case title word to its inverse document frequency (natural
    log), by which the search ranks what a query must match.
    """

    forums: Mapping[str, Forum]
    users: Mapping[str, User]
    threads: Mapping[int, Thread]
    threads_by_forum: Mapping[str, tuple[Thread, ...]]
    threads_by_author: Mapping[str, tuple[Thread, ...]]
    comments: Mapping[int, Comment]
    comments_by_thread: Mapping[int, tuple[Comment, ...]]
    word_weights: Mapping[str, float]

    def first_thread(self, forum: str, rank: str) -> Thread:
        """Return the newest or top thread of a forum."""
        return max(self.threads_by_forum[forum], key=lambda t: t.order if rank == "newest" else t.points)

    def best_thread(self, author: str) -> Thread:
        """Return the author's thread with the most points."""
        return max(self.threads_by_author[author], key=lambda t: t.points)

    def titled(self, title: str) -> Thread:
        """Return the one thread of this title."""
        return next(t for t in self.threads.values() if t.title == title)

    def shared(self, title: str, forum: str) -> Thread:
        """Return the thread of this title in this forum."""
        return next(t for t in self.threads_by_forum[forum] if t.title == title)


def build(seed: int) -> ForumData:
    """Generate the forum of this seed: 20 forums, 460 threads, some 3,000 comments, 151 users."""
    rng = random.Random(f"forum {seed}")
    users = _users(rng)
    forums = {
        name: Forum(name, f"All about {nouns[0]}, {nouns[1]} and more.", rng.randrange(40, 900))
        for name, nouns in words.FORUM_TOPICS.items()
    }
    threads = _threads(rng, [name for name in users if name != ME])
    comments = _comments(rng, threads, list(users))
    by_forum: dict[str, list[Thread]] = defaultdict(list)
    by_author: dict[str, list[Thread]] = defaultdict(list)
    for thread in threads:
        by_forum[thread.forum].append(thread)
        by_author[thread.author].append(thread)
    comments_by_thread: dict[int, list[Comment]] = defaultdict(list)
    for comment in comments:
        comments_by_thread[comment.thread_id].append(comment)
    return ForumData(
        forums=forums,
        users=users,
        threads={t.thread_id: t for t in threads},
        threads_by_forum={k: tuple(v) for k, v in by_forum.items()},
        threads_by_author={k: tuple(v) for k, v in by_author.items()},
        comments={c.comment_id: c for c in comments},
        comments_by_thread={k: tuple(v) for k, v in comments_by_thread.items()},
        word_weights=_word_weights(threads),
    )


def bio_text(likes: str, place: str) -> str:
    """The biography of somebody who likes this and lives there."""
    return f"I like {likes} and live in {place}."


def _users(rng: random.Random) -> dict[str, User]:
    """Three users share each stem, such as amber, amber4 and amber71."""
    names = [ME]
    for stem in words.USER_STEMS:
        names += [stem, f"{stem}{rng.randrange(2, 10)}", f"{stem}{rng.randrange(20, 100)}"]
    return {name: User(name, bio_text(rng.choice(words.BIO_LIKES), rng.choice(words.BIO_PLACES))) for name in names}


def _titles(rng: random.Random, nouns: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return 23 (title, noun) pairs for one forum: families of siblings, and three titles that others have too."""
    pairs = rng.sample([(noun, kind) for noun in nouns for kind in words.KINDS], 6)
    titles = []
    for noun, kind in pairs:
        titles += [(f"{adjective} {noun} {kind}", noun) for adjective in rng.sample(words.ADJECTIVES, 3)]
    titles += [(f"{noun.capitalize()} {kind}", noun) for noun, kind in pairs[:2]]
    titles += [(title, rng.choice(nouns)) for title in rng.sample(words.SHARED_TITLES, 3)]
    rng.shuffle(titles)
    return titles


def _threads(rng: random.Random, authors: list[str]) -> list[Thread]:
    """Threads of all forums in posting order; a third of the authors write most of them."""
    titles = [(forum, *pair) for forum, nouns in words.FORUM_TOPICS.items() for pair in _titles(rng, nouns)]
    rng.shuffle(titles)
    active = rng.sample(authors, len(authors) // 3)
    writers = [rng.choice(active if rng.random() < 0.8 else authors) for _ in titles]
    specific = [i for i, (_, title, _) in enumerate(titles) if title not in words.SHARED_TITLES]
    for i in rng.sample(specific, 10):
        writers[i] = ME
    points = rng.sample(range(3, 1500), len(titles))
    return [
        Thread(
            thread_id=FIRST_THREAD_ID + i,
            forum=forum,
            title=title,
            body=f"{rng.choice(words.OPENINGS).format(noun=noun)} {rng.choice(words.CLOSINGS)}",
            author=writers[i],
            points=points[i],
            day=TODAY - timedelta(days=1 + (len(titles) - 1 - i) // 2),
            order=i,
        )
        for i, (forum, title, noun) in enumerate(titles)
    ]


def _comments(rng: random.Random, threads: list[Thread], authors: list[str]) -> list[Comment]:
    """Up to 13 comments a thread, numbered over the whole forum."""
    comments: list[Comment] = []
    for thread in threads:
        for day_offset in sorted(rng.randrange(9) for _ in range(rng.randrange(14))):
            day = min(thread.day + timedelta(days=day_offset), TODAY)
            number = len(comments) + 1
            body = rng.choice(words.COMMENTS)
            comments.append(Comment(number, thread.thread_id, rng.choice(authors), body, day, number))
    return comments


def _word_weights(threads: list[Thread]) -> dict[str, float]:
    """Inverse document frequency (natural log) of each title word."""
    counts = Counter(word for thread in threads for word in set(thread.title.lower().split()))
    return {word: math.log(len(threads) / count) for word, count in counts.items()}
