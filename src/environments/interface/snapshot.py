"""What is visible on a page, as plain data: the meeting point of real and browserless pages.

Owns ``Node`` and ``Snapshot``. Invariants: a snapshot holds facts only (tags, attributes, live
values, text in document order, nothing hidden) and no decision about how they are shown, so that
one renderer (``observation``) serves both drivers and they cannot drift apart. The in-page script
writes the JSON that ``page_reply`` reads; ``html_page`` builds the same from HTML text.

A node's ``attributes`` may hold the HTML attributes of ``ATTRIBUTES`` and these facts:
``value`` (live value), ``checked``, ``disabled``, ``readonly``, ``unspoken`` (for eyes only: ``aria-hidden``; present
when true), ``options`` (list of option texts), ``selected`` (list of chosen option texts), ``labelledby`` (text
referred to), ``clickable`` (present when something listens for clicks), ``state`` (words such as ``pressed``),
``hint`` (words for an element without any), ``n`` (its number among the driver's references).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

ATTRIBUTES = (
    "id",
    "for",
    "type",
    "role",
    "name",
    "title",
    "alt",
    "placeholder",
    "aria-label",
    "href",
    "contenteditable",
)
"""HTML attributes that a snapshot keeps (``href`` only as a sign that a link leads somewhere)."""

MAX_DEPTH = 150
"""Deeper nodes are hung under their ancestor at this depth, so that readers may recurse."""

MAX_CONTROL_DEPTH = 450
"""The same for controls, which keep their content (it is their name) as long as that can be read."""


@dataclass(slots=True)
class Node:
    """One visible element; ``children`` are nodes and texts (runs of ASCII white space made one space)."""

    tag: str
    attributes: dict[str, Any] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """Yield this element and all within it, in document order."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(child for child in reversed(node.children) if not isinstance(child, str))


@dataclass(frozen=True, slots=True)
class RichView:
    """The whole tree of a page with computed attributes, and the window's width and height in pixels."""

    root: Node
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One page: its real ``url``, ``title``, HTTP ``status`` (0 when unknown) and visible ``root``.

    ``tabs`` are the titles of all open tabs and ``tab`` the index of this one. ``rich`` is there for the
    ``webrl`` format only, whose numbered nodes have the attribute ``mark`` in both trees.
    """

    url: str
    title: str
    root: Node
    status: int = 0
    tabs: tuple[str, ...] = ()
    tab: int = 0
    rich: RichView | None = None
