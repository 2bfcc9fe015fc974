"""One session's view of the encyclopedia: its own reading list over the shared articles.

Owns the one thing that a visitor can change. The base data is never written to; no session sees another's.
"""

from __future__ import annotations

from sites.site import State
from sites.wiki.data import WikiData

MAX_READING = 30


class WikiState(State):
    """The overlay of one session; ``reading`` holds titles in the order in which they were put there."""

    def __init__(self, data: WikiData) -> None:
        super().__init__()
        self.data = data
        self.reading: list[str] = []

    def put(self, title: str) -> bool:
        """Put an article on the reading list; return whether there was room."""
        if title not in self.reading and len(self.reading) >= MAX_READING:
            return False
        if title not in self.reading:
            self.reading.append(title)
        return True

    def take(self, title: str) -> None:
        """Take an article off the reading list."""
        if title in self.reading:
            self.reading.remove(title)
