"""Nothing that a terminal would obey is left of a text."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from records.terminal import printable


def test_orders_to_a_terminal_are_shown_as_escapes() -> None:
    assert printable("a\x1b[2Jb\x07\x9b31m\r") == "a\\x1b[2Jb\\x07\\x9b31m\\r"
    assert printable("left \u202eright \ud800") == "left \\u202eright \\ud800"


def test_plain_text_stays_as_it_is() -> None:
    for text in ("", "one line", "two\nlines\tand a tab", "Grüße, 東京, 🙂", "no\xa0break"):
        assert printable(text) == text


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_whatever_is_left_shows_something_and_can_be_written(text: str) -> None:
    shown = printable(text)
    assert not {unicodedata.category(c) for c in shown if c not in "\n\t"} & {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}
    shown.encode("utf-8")
    assert printable(shown) == shown
