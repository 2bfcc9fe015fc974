"""What a settings class refuses, in words that name the field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from records.bounds import above, at_least, one_of, share


@dataclass(frozen=True)
class Example:
    count: int = 2
    rate: float = 0.5
    shape: str = "round"


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: at_least(Example(count=-1), 0, "rate", "count"), "count must be at least 0, found -1"),
        (lambda: above(Example(rate=0.0), 0, "count", "rate"), "rate must be above 0, found 0.0"),
        (lambda: share(Example(rate=1.5), "rate"), r"rate must be in \[0, 1\], found 1.5"),
        (lambda: share(Example(rate=float("nan")), "rate"), r"rate must be in \[0, 1\], found nan"),
        (lambda: one_of(Example(), "shape", ("square", "flat")), "shape must be 'square' or 'flat', found 'round'"),
    ],
)
def test_what_is_out_of_bounds_is_named(check: Callable[[], None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check()


def test_limits_themselves_are_allowed() -> None:
    at_least(Example(), 2, "count")
    above(Example(), 0.4, "rate")
    share(Example(rate=0.0), "rate")
    share(Example(rate=1.0), "rate")
    one_of(Example(), "shape", ("round",))
