"""Options that are numbers: within their limits, and numbers at all.

Owns ``number_option``. Invariant: nan is refused, which lies beyond no limit.
"""

from __future__ import annotations

import math
from typing import Any

import typer

from records.bounds import LONGEST_S


def number_option(low: float, high: float, help_text: str) -> Any:
    """Return an option for a number from ``low`` to ``high``."""
    return typer.Option(min=low, max=high, help=help_text, callback=_number)


def seconds_option(low: float, help_text: str) -> Any:
    """Return an option for a time of at least ``low`` seconds, and no longer than any wait can be."""
    return number_option(low, LONGEST_S, help_text)


def _number(value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise typer.BadParameter("expected a number, found nan")
    return value
