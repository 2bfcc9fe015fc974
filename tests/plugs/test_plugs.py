"""Plug points find what is registered or named, say what is missing, and read options strictly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from plugs.options import read_options
from plugs.registry import Registry

THING = 7
NUMBERS = Registry("number", int, "waymark.no_such_group", {"seven": f"{__name__}:THING"})


@dataclass(frozen=True)
class Size:
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    width: int = 3

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"width must be at least 1, found {self.width}")


def test_a_name_and_a_reference_find_the_same() -> None:
    assert NUMBERS.find("seven") == NUMBERS.find(f"{__name__}:THING") == 7
    assert NUMBERS.names() == ("seven",)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("eight", "expected a number out of seven, or 'module:name', found 'eight'"),
        ("no_such_module:x", "cannot import 'no_such_module'"),
        (f"{__name__}:nothing", "has no 'nothing'"),
        (f"{__name__}:Size", "expected a number .int., found a type"),
        (":x", "expected 'module:name', found ':x'"),
    ],
)
def test_what_is_not_there_is_said(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        NUMBERS.find(name)


def test_options_become_settings() -> None:
    assert read_options(Size, {"width": 5}, "size") == Size(5) == read_options(Size, Size(5), "size")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"height": 1}, "unknown key 'size.height'"),
        ({"width": "wide"}, "size.width: .*integer.*found 'wide'"),
        ({"width": 0}, "size: width must be at least 1, found 0"),
    ],
)
def test_wrong_options_name_the_key(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_options(Size, options, "size")
