"""Plug points find what is registered or named, say what is missing, and read options strictly."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from plugs.options import read_each, read_options
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


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("raise OSError('no licence')", "cannot import 'of_ones_own': OSError: no licence"),
        ("1 / 0", "cannot import 'of_ones_own': ZeroDivisionError: division by zero"),
        ("None.nothing", "cannot import 'of_ones_own': AttributeError: "),
        ("import sys; sys.exit('bye')", "'of_ones_own' ends the process when it is imported: bye"),
    ],
)
def test_a_module_that_cannot_be_imported_is_a_sentence_whatever_it_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    (tmp_path / "of_ones_own.py").write_text(f"{line}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=said):
        NUMBERS.find("of_ones_own:NUMBER")


def test_options_become_settings() -> None:
    assert read_options(Size, {"width": 5}, "size") == Size(5) == read_options(Size, Size(5), "size")


@dataclass(frozen=True)
class Named:
    """Settings without a default for everything."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    title: str


def test_sections_are_read_by_name_and_every_problem_is_said() -> None:
    classes = {"size": Size, "named": Named}

    def settings_of(name: str) -> type[object]:
        if name not in classes:
            raise ValueError(f"there is no {name}")
        return classes[name]

    read, problems = read_each("things", {"size": None, "named": {"title": "a"}}, settings_of)
    assert (read, problems) == ({"size": Size(), "named": Named("a")}, [])
    read, problems = read_each("things", {"none": {}, "named": {"titel": "a"}, "size": {"width": 4}}, settings_of)
    assert read == {"size": Size(4)}
    assert problems[0] == "things.none: there is no none"
    assert "unknown key 'things.named.titel'; did you mean 'things.named.title'?" in problems


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
