"""Checks that every settings class uses on its own fields, so that a bad recipe fails when it is read.

Owns the wording: the field, what was expected, what was found. Invariants: None stands for a setting that is not made,
and passes; no number is beyond ``LARGEST``, which is what shards and browsers hold in 32 bits. Standard library only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LARGEST = 2**31 - 1
LONGEST_S = LARGEST // 1000
"""Longest wait, in seconds (24 days): browsers count its milliseconds in 32 bits."""


class SettingError(ValueError):
    """A setting has a value that makes no sense; the text begins with the setting's name."""


def require(holds: bool, name: str, expected: str, found: object) -> None:
    """Raise ``SettingError`` where ``holds`` is false."""
    if not holds:
        raise SettingError(f"{name} must be {expected}, found {found!r:.200}")


def at_least(owner: DataclassInstance, minimum: float, *names: str) -> None:
    """Refuse numbers below ``minimum``."""
    for name, value in _made(owner, names):
        require(value >= minimum, name, f"at least {minimum}", value)
        require(value <= LARGEST, name, f"at most {LARGEST}", value)


def above(owner: DataclassInstance, limit: float, *names: str) -> None:
    """Refuse numbers that are not above ``limit``."""
    for name, value in _made(owner, names):
        require(value > limit, name, f"above {limit}", value)
        require(value <= LARGEST, name, f"at most {LARGEST}", value)


def share(owner: DataclassInstance, *names: str) -> None:
    """Refuse numbers outside [0, 1]."""
    for name, value in _made(owner, names):
        require(0 <= value <= 1, name, "in [0, 1]", value)


def gpus(owner: DataclassInstance, *names: str) -> None:
    """Refuse what no process can be given of GPUs: less than none, or more than one and a part of another."""
    at_least(owner, 0, *names)
    for name, value in _made(owner, names):
        require(value <= 1 or value % 1 == 0, name, "a share of one GPU, or a whole number of them", value)


def times(owner: DataclassInstance, may_be_zero: Collection[str] = ()) -> None:
    """Refuse a time (a field whose name ends in ``_s``) that is not above 0, or longer than any wait can be."""
    for name, value in _made(owner, (field.name for field in fields(owner) if field.name.endswith("_s"))):
        if name in may_be_zero:
            require(value >= 0, name, "a time of 0 s or more", value)
        else:
            require(value > 0, name, "a time above 0 s", value)
        require(value <= LONGEST_S, name, f"a time of at most {LONGEST_S} s", value)


def one_of(owner: DataclassInstance, name: str, choices: Collection[str]) -> None:
    """Refuse a value that is none of ``choices``."""
    for _, value in _made(owner, (name,)):
        require(value in choices, name, " or ".join(map(repr, choices)), value)


def _made(owner: DataclassInstance, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the value of each of these settings that is made."""
    for name in names:
        value = getattr(owner, name)
        if value is not None:
            yield name, value
