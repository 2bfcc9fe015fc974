"""How texts are split before a short reference is looked for as a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.tokens import has_token, tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("costs $1,299.50 (5-star), 3/4.", ["costs", "$", "1,299.50", "(", "5-star", ")", ",", "3/4", "."]),
        ("it's can't they'll dogs' 'tis", ["it", "'s", "ca", "n't", "they", "'ll", "dogs", "'", "'", "tis"]),
        ("o'brien cannot", ["o'brien", "can", "not"]),
        ("-7 +1 a_b c++ n/a", ["-7", "+1", "a_b", "c++", "n/a"]),
        ("at 10:30, no: 12:", ["at", "10:30", ",", "no", ":", "12", ":"]),
        ("it is 5. then", ["it", "is", "5", ".", "then"]),
        ("wait... x--y", ["wait", "...", "x", "--", "y"]),
        ("v1.2.3 a.b@c.com", ["v1.2.3", "a.b", "@", "c.com"]),
        ("<h1>order</h1>", ["<", "h1", ">", "order", "<", "/h1", ">"]),
        ('"50%" & [x]', ['"', "50", "%", '"', "&", "[", "x", "]"]),
        ("am/'single' a/'bc", ["am/", "'", "single", "'", "a/", "'", "bc"]),
        ("'n/a' b'cd'e 's/y", ["'n/a", "'", "b'cd'e", "'s/y"]),
        ("  ", []),
    ],
)
def test_words_and_signs(text, expected):
    assert tokens(text) == expected


@given(st.text(max_size=60))
def test_no_sign_is_lost_but_white_space(text):
    assert "".join(tokens(text)) == "".join(text.split())


@given(st.text("ab5.-' \"n/t,:<>", max_size=30), st.text("ab5.-'nt", min_size=1, max_size=3))
def test_a_token_is_found_where_splitting_everything_finds_it(text, token):
    assert has_token(text, token) == (token in tokens(text))
    assert has_token(f"{text} {token}", token) == (tokens(token) == [token] or token in tokens(text))


def test_a_price_on_a_long_page_is_a_word_and_its_beginning_is_none():
    page = '<div class="a b" data-x="1">Hello world, it costs $12.50 &amp; more</div>\n' * 7000
    assert has_token(page, "12.50")
    assert not has_token(page, "12.5")
