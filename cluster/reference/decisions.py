"""The generated index of decisions: ``docs/decisions/README.md``, one line each.

Owns the form of a record's head: ``# NUMBER. Title`` and, where it no longer holds, a first line ``Superseded by ...``.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "decisions"
PAGE = FOLDER / "README.md"

_INTRO = """\
# Decisions

Generated from the records' titles by `make docs`; do not edit. A record that no longer holds says so in its first line.
"""
_TITLE = re.compile(r"# (\d+)\. (.+)")
_SUPERSEDED = re.compile(r"Superseded by (.+?)\.(?:\s|$)")


def index() -> str:
    """Return the page as Markdown; raise ``ValueError`` naming a record without a numbered title."""
    return "\n".join([_INTRO, *(_line(path) for path in sorted(FOLDER.glob("[0-9]*.md"))), ""])


def _line(path: Path) -> str:
    head, _, body = path.read_text(encoding="utf-8").partition("\n")
    title = _TITLE.fullmatch(head)
    if title is None or int(title[1]) != int(path.name[:4]):
        raise ValueError(f"{path.name}: expected a first line '# {int(path.name[:4])}. Title', found {head!r}")
    gone = _SUPERSEDED.match(body.lstrip())
    return f"- [{title[1]}]({path.name}) {title[2]}" + (f" (superseded by {gone[1]})" if gone else "")
