"""What both protocols have in common in the bodies of their replies: JSON, counts of tokens, and errors.

Owns ``json_object``, ``tokens_in``, ``text_of_error``, ``status_in`` and ``pause_s``. Invariant: whatever a body
holds, it is read or left out, and nothing is raised.
"""

from __future__ import annotations

import json
import math
import time
from typing import Any

from pydantic_core import from_json

from judges.llm.client import retry_after_s

_MOST_DIGITS = 40
"""Fixed: counts and statuses that are written as text are shorter."""


def json_object(text: str | bytes) -> dict[str, Any] | None:
    """Return the object that a body is, None where it is none."""
    try:
        found = from_json(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def tokens_in(usage: object, name: str) -> int:
    """Return a count of tokens, a part of one as a whole; 0 where there is none, or what is no number."""
    counted = _number(usage.get(name)) if isinstance(usage, dict) else None
    return 0 if counted is None else math.ceil(counted)


def status_in(error: object) -> int | None:
    """Return the HTTP status that an error in a body has for its ``code``, None where it has none."""
    code = _number(error.get("code")) if isinstance(error, dict) else None
    return int(code) if code is not None and 400 <= code < 600 else None


def text_of_error(error: object) -> str:
    """Return what an error in a body says."""
    said = error.get("message") or error if isinstance(error, dict) else error
    if not said:
        return "no reason given"
    return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)


def pause_s(retry_after: str | None, error: object) -> float:
    """Return the seconds that an endpoint wants to be left alone: its header's, or its error's where those are more."""
    return max(retry_after_s(retry_after, time.time()), _retry_delay_s(error))


def _retry_delay_s(error: object) -> float:
    """Return the seconds of Google's own ``RetryInfo`` in an error (``"13s"``), 0 where there is none."""
    listed = error.get("details") if isinstance(error, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        delay = entry.get("retryDelay") if isinstance(entry, dict) else None
        if isinstance(delay, str) and delay.endswith("s"):
            return retry_after_s(delay.removesuffix("s"), time.time())
    return 0.0


def _number(value: object) -> float | int | None:
    if isinstance(value, str) and len(value) < _MOST_DIGITS:
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None
