"""Text of others on a terminal: what pages, tasks, models and paths say is shown, never obeyed.

Owns ``printable``. A terminal takes control characters for orders: to rewrite what stands above, to set its title, to
answer as if the user typed. Invariant: nothing but line breaks and tabs is left of them. Standard library only.
"""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """Return ``text`` with every character that shows nothing (control, direction, surrogate) written as its escape."""
    if text.isprintable():
        return text
    return "".join(character if _shows(character) else _escaped(character) for character in text)


def _shows(character: str) -> bool:
    return character.isprintable() or character in "\n\t" or unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
