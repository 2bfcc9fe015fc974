"""What a settings class refuses, in words that name the field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from records.bounds import LARGEST, LONGEST_S, SettingError, above, at_least, one_of, require, share, times


@dataclass(frozen=True)
class Example:
    count: int = 2
    rate: float = 0.5
    shape: str = "round"
    wait_s: float | None = 1.0
    pause_s: float = 0.0


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: at_least(Example(count=-1), 0, "rate", "count"), "count must be at least 0, found -1"),
        (lambda: above(Example(rate=0.0), 0, "count", "rate"), "rate must be above 0, found 0.0"),
        (lambda: share(Example(rate=1.5), "rate"), r"rate must be in \[0, 1\], found 1.5"),
        (lambda: share(Example(rate=float("nan")), "rate"), r"rate must be in \[0, 1\], found nan"),
        (lambda: one_of(Example(), "shape", ("square", "flat")), "shape must be 'square' or 'flat', found 'round'"),
        (lambda: at_least(Example(count=10**30), 1, "count"), f"count must be at most {LARGEST}, found 1000"),
        (lambda: above(Example(rate=1e30), 1, "rate"), f"rate must be at most {LARGEST}, found 1e"),
        (lambda: times(Example(wait_s=0.0), ("pause_s",)), "wait_s must be a time above 0 s, found 0.0"),
        (lambda: times(Example(wait_s=1e9), ("pause_s",)), f"wait_s must be a time of at most {LONGEST_S} s"),
        (lambda: times(Example(pause_s=-1.0), ("pause_s",)), "pause_s must be a time of 0 s or more, found -1.0"),
        (lambda: times(Example()), "pause_s must be a time above 0 s, found 0.0"),
        (lambda: one_of(Example(shape="\x1b[2J"), "shape", ("flat",)), r"shape must be 'flat', found '\\x1b\[2J'"),
    ],
)
def test_what_is_out_of_bounds_is_named(check: Callable[[], None], message: str) -> None:
    with pytest.raises(SettingError, match=f"^{message}"):
        check()


def refused(check: Callable[[], None]) -> bool:
    try:
        check()
    except SettingError:
        return True
    return False


@pytest.mark.parametrize(
    ("limit", "beyond"),
    [
        (lambda: at_least(Example(), 2, "count"), lambda: at_least(Example(), 3, "count")),
        (
            lambda: at_least(Example(count=LARGEST), 2, "count"),
            lambda: at_least(Example(count=LARGEST + 1), 2, "count"),
        ),
        (lambda: above(Example(), 0.4, "rate"), lambda: above(Example(), 0.5, "rate")),
        (lambda: share(Example(rate=0.0), "rate"), lambda: share(Example(rate=-1e-9), "rate")),
        (lambda: share(Example(rate=1.0), "rate"), lambda: share(Example(rate=1 + 1e-9), "rate")),
        (lambda: one_of(Example(), "shape", ("round",)), lambda: one_of(Example(), "shape", ("rounder",))),
        (
            lambda: times(Example(wait_s=LONGEST_S), may_be_zero=("pause_s",)),
            lambda: times(Example(wait_s=LONGEST_S + 1), may_be_zero=("pause_s",)),
        ),
    ],
)
def test_limits_themselves_are_allowed_and_what_lies_beyond_is_not(
    limit: Callable[[], None], beyond: Callable[[], None]
) -> None:
    assert not refused(limit)
    assert refused(beyond)


def test_a_setting_that_is_not_made_passes_and_one_that_is_does_not() -> None:
    assert not refused(lambda: times(Example(wait_s=None), may_be_zero=("pause_s",)))
    assert refused(lambda: times(Example(wait_s=0.0), may_be_zero=("pause_s",)))
    assert not refused(lambda: above(Example(wait_s=None), 1, "wait_s"))
    assert refused(lambda: above(Example(wait_s=1.0), 1, "wait_s"))


def test_a_long_value_is_cut() -> None:
    with pytest.raises(SettingError) as caught:
        require(False, "name", "short", "x" * 10_000)
    assert len(str(caught.value)) < 300
