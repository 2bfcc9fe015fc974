"""Texts of pages and models as files can hold them.

Owns the two rules: what UTF-8 cannot hold is replaced, and what a file's name is made of. Standard library only.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def storable(text: str) -> str:
    """Return a text with "?" for each lone surrogate, which pages and JSON can contain and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")


def file_name(name: str) -> str:
    """Return a name as that of a file: each character but letters, digits, ".", "_" and "-" is "_"."""
    return _UNSAFE.sub("_", name)
