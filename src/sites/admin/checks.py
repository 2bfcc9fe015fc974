"""What the back office's tasks are judged by, beside what all sites share (``sites.checks``).

Pages of records say the whole record in ``#record``, tables their number of rows in ``#count``. Invariant: every
judged page fails its check in a fresh session.
"""

from __future__ import annotations

from collections.abc import Iterable

from sites.checks import Check, PagesOf, Target, both, has, shows

_OFFICE = PagesOf("admin")
at, ends_at, equals, includes = _OFFICE.at, _OFFICE.ends_at, _OFFICE.equals, _OFFICE.includes


def ticked(names: Iterable[str]) -> Check:
    """All checkboxes of these names are on."""
    return both(*(has(name, "checked", "checkbox") for name in names))


def recorded(path: str, summary: str) -> Check:
    """The page of a record is open and says this."""
    return both(at(path), shows(summary))


def record(path: str, summary: str) -> Target:
    """The record's page says exactly this."""
    return equals(path, "#record", summary)
