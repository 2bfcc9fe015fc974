"""Checks that every settings class uses on its own fields, so that a bad recipe fails when it is read.

Owns the wording: the field, what was expected, what was found. Standard library only.
"""

from __future__ import annotations

from collections.abc import Collection


def at_least(owner: object, minimum: float, *names: str) -> None:
    """Raise ``ValueError`` naming the first of the fields that is below ``minimum``."""
    for name in names:
        value = getattr(owner, name)
        if value < minimum:
            raise ValueError(f"{name} must be at least {minimum}, found {value}")


def above(owner: object, limit: float, *names: str) -> None:
    """Raise ``ValueError`` naming the first of the fields that is not above ``limit``."""
    for name in names:
        value = getattr(owner, name)
        if value <= limit:
            raise ValueError(f"{name} must be above {limit}, found {value}")


def share(owner: object, *names: str) -> None:
    """Raise ``ValueError`` naming the first of the fields that is outside [0, 1]."""
    for name in names:
        value = getattr(owner, name)
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be in [0, 1], found {value}")


def one_of(owner: object, name: str, choices: Collection[str]) -> None:
    """Raise ``ValueError`` where the field is none of ``choices``."""
    value = getattr(owner, name)
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, found {value!r}")
