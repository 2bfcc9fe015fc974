"""One session's view of the forum: its own votes, posts, edits and messages over the shared base data.

Owns every change that a visitor can make, as an overlay whose creation costs microseconds.
Invariants: the base data is never written to; a session sees no other session's changes; time
stands still, so whatever is posted is dated today and ordered after everything before it. Methods
assume that the page has checked the input and who is logged in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from sites.forum import data as base
from sites.forum.data import Comment, ForumData, Thread, User
from sites.overlay import Overlay
from sites.site import State

SORTS = ("hot", "new", "top")
MATCH_SHARE = 0.75
"""A title matches a query when it covers this share of the query's word weights."""


@dataclass(frozen=True, slots=True)
class Message:
    """One private message from ``sender`` to ``receiver``."""

    sender: str
    receiver: str
    body: str


@lru_cache(maxsize=10_000)
def _words(title: str) -> frozenset[str]:
    """The words that a title is found by."""
    return frozenset(title.lower().split())


class ForumState(State):
    """The overlay of one session; ``me`` is the logged-in user's name or None."""

    def __init__(self, data: ForumData, me: str | None) -> None:
        super().__init__()
        self.data = data
        self.me = me
        self.votes: dict[int, int] = {}
        self.subscriptions: set[str] = set(base.MY_SUBSCRIPTIONS)
        self.blocked: set[str] = set()
        self.pinned: int | None = None
        self.messages: list[Message] = []
        self.bio: str | None = None
        self._threads = Overlay(data.threads)
        self._comments = Overlay(data.comments)
        self._next_id = base.FIRST_SESSION_ID

    # -- reading ------------------------------------------------------------------------------

    def user(self, name: str) -> User | None:
        """Return the user of this name with the biography as it is now."""
        user = self.data.users.get(name)
        return replace(user, bio=self.bio) if user and name == base.ME and self.bio is not None else user

    def thread(self, thread_id: int) -> Thread | None:
        """Return the thread as it is now, None when there is none or it was deleted."""
        return self._threads.get(thread_id)

    def points(self, thread: Thread) -> int:
        """Return the thread's points with the session's own vote."""
        return thread.points + self.votes.get(thread.thread_id, 0)

    def threads(self, sort: str, *, forum: str | None = None, author: str | None = None) -> list[Thread]:
        """Return the threads of a forum, of an author, or all of them, without those of blocked users."""
        found = [
            thread
            for thread in self._threads.all()
            if forum in (None, thread.forum)
            and (thread.author == author if author is not None else thread.author not in self.blocked)
        ]
        return self.sorted(found, sort)

    def sorted(self, threads: list[Thread], sort: str) -> list[Thread]:
        """Sort by ``new`` (latest first), ``top`` (most points first) or ``hot`` (points that fade with age)."""
        if sort == "new":
            return sorted(threads, key=lambda t: -t.order)
        if sort == "top":
            return sorted(threads, key=lambda t: (-self.points(t), -t.order))
        return sorted(threads, key=lambda t: (-self._heat(t), -t.order))

    def search(self, query: str) -> list[Thread]:
        """Return the threads whose titles match the query, most points first.

        A match covers at least ``MATCH_SHARE`` of the query's words, weighted by how rare they
        are: a query for one title also finds its siblings.
        """
        query_words = _words(query)
        if not query_words:
            return []
        weights = {word: self.data.word_weights.get(word, 6.0) for word in query_words}
        needed = MATCH_SHARE * sum(weights.values())
        shown = (thread for thread in self._threads.all() if thread.author not in self.blocked)
        found = [t for t in shown if sum(weights[word] for word in query_words & _words(t.title)) >= needed]
        return self.sorted(found, "top")

    def find_users(self, query: str) -> list[str]:
        """Return up to five user names that begin with the query."""
        start = query.strip().lower()
        return [name for name in sorted(self.data.users) if start and name.startswith(start)][:5]

    def comments(self, thread_id: int) -> list[Comment]:
        """Return the thread's comments, latest first, without those of blocked users."""
        found = (c for c in self._comments.all() if c.thread_id == thread_id and c.author not in self.blocked)
        return sorted(found, key=lambda c: -c.order)

    def comments_by(self, author: str) -> list[Comment]:
        """Return the author's comments on threads that still exist, latest first."""
        found = (c for c in self._comments.all() if c.author == author and self.thread(c.thread_id) is not None)
        return sorted(found, key=lambda c: -c.order)

    def comment(self, comment_id: int, thread_id: int) -> Comment | None:
        """Return one comment of a thread as it is now."""
        return next((c for c in self.comments(thread_id) if c.comment_id == comment_id), None)

    def conversation(self, name: str) -> list[Message]:
        """Return the messages exchanged with this user, latest first."""
        return [m for m in reversed(self.messages) if name in (m.sender, m.receiver)]

    # -- changing -----------------------------------------------------------------------------

    def vote(self, thread_id: int, direction: int) -> None:
        """Vote +1 or -1; the same vote again takes it back."""
        if self.votes.get(thread_id) == direction:
            del self.votes[thread_id]
        else:
            self.votes[thread_id] = direction

    def submit(self, forum: str, title: str, body: str, crossposted_from: str = "") -> Thread:
        """Add a thread of the logged-in user, with the one point that its author gives it."""
        number = self._number()
        author = self.me or base.ME
        thread = Thread(number, forum, title, body, author, 1, base.TODAY, number, crossposted_from)
        self._threads.put(number, thread)
        return thread

    def edit_thread(self, thread: Thread, title: str, body: str) -> None:
        """Replace a thread's title and body."""
        self._threads.put(thread.thread_id, replace(thread, title=title, body=body))

    def delete_thread(self, thread_id: int) -> None:
        """Delete a thread, and its pin with it."""
        self._threads.remove(thread_id)
        if self.pinned == thread_id:
            self.pinned = None

    def reply(self, thread_id: int, body: str) -> None:
        """Add a comment of the logged-in user to a thread."""
        number = self._number()
        self._comments.put(number, Comment(number, thread_id, self.me or base.ME, body, base.TODAY, number))

    def edit_comment(self, comment: Comment, body: str) -> None:
        """Replace a comment's text."""
        self._comments.put(comment.comment_id, replace(comment, body=body))

    def delete_comment(self, comment_id: int) -> None:
        """Delete a comment."""
        self._comments.remove(comment_id)

    def send(self, receiver: str, body: str) -> None:
        """Send a message from the logged-in user."""
        self.messages.append(Message(self.me or base.ME, receiver, body))

    def _number(self) -> int:
        number = self._next_id
        self._next_id += 1
        return number

    def _heat(self, thread: Thread) -> float:
        age_days = (base.TODAY - thread.day).days
        return self.points(thread) / float(age_days + 10) ** 1.2
