"""What pages read from an address: choices, search words, dates."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from starlette.requests import Request

from sites.rendering import clean_text


def chosen(request: Request, name: str, choices: Collection[str], default: str) -> str:
    """Return the query's choice, the default when it names none that exists."""
    wanted = request.query_params.get(name, default)
    return wanted if wanted in choices else default


def words_of(request: Request, name: str) -> str:
    """Return the query's search words in lower case."""
    return clean_text(request.query_params.get(name, "")).lower()


def read_date(text: str) -> date | None:
    """Return the date that a date field sent, None for an empty one; raise ``ValueError`` for anything else."""
    return date.fromisoformat(text) if text else None
