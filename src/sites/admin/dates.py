"""The shop's calendar in ISO dates: six months of past orders, of 30 days each, and the day that is today.

Owns the way between a day's number (0 is the first of August) and its date. Invariant: ISO dates of the
same length compare as their days do, so texts are compared throughout.
"""

from __future__ import annotations

import re

from sites.shop.data import MONTHS

DAYS_A_MONTH = 30
DAYS = DAYS_A_MONTH * len(MONTHS)
"""Number of days on which past orders may have been placed."""
TODAY = "2026-02-01"
_FIRST_YEAR = 2025
_FIRST_MONTH = 8
_ISO = re.compile(r"20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])")


def iso(day: int) -> str:
    """Return the date of a day; days past the calendar's end run on into the months that follow."""
    months = _FIRST_MONTH - 1 + day // DAYS_A_MONTH
    return f"{_FIRST_YEAR + months // 12}-{months % 12 + 1:02}-{day % DAYS_A_MONTH + 1:02}"


def of_shop_date(text: str) -> str:
    """Return the ISO date of the shop's way to write it, such as "14 September"."""
    day, month = text.split()
    return iso(MONTHS.index(month) * DAYS_A_MONTH + int(day) - 1)


def month_bounds(month: str) -> tuple[str, str]:
    """Return the first and the last day of a month of past orders."""
    first = MONTHS.index(month) * DAYS_A_MONTH
    return iso(first), iso(first + DAYS_A_MONTH - 1)


def is_date(text: str) -> bool:
    """Whether the text is a date as date fields send it."""
    return _ISO.fullmatch(text) is not None
