"""What an action comes to on a page without a browser: a request, or a feedback code.

Owns ``PageRequest`` and ``Effect``. Pure data.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urldefrag


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A page that an action asks for; ``form`` holds the fields of a POST, ``sent`` is true for any form."""

    url: str
    method: str = "GET"
    form: tuple[tuple[str, str], ...] = ()
    new_tab: bool = False
    sent: bool = False


@dataclass(frozen=True, slots=True)
class Effect:
    """What came of an action: maybe a request, maybe a feedback code with its detail."""

    request: PageRequest | None = None
    code: str = ""
    detail: str = ""


def same_document(url: str, other: str) -> bool:
    """Whether going from ``other`` to ``url`` only moves to a fragment."""
    return "#" in url and urldefrag(url)[0] == urldefrag(other)[0]
