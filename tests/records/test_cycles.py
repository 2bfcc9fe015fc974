"""What is a cycle among moves, what is the same action, and what is the same state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.cycles import Cycle, bare_action, cycle_at_end, first_cycle, same_ending, state_hash


@pytest.mark.parametrize(
    ("moves", "found"),
    [
        ("abc", None),
        ("aabb", None),
        ("xaaa", Cycle(1, 1, 3)),
        ("xyababab", Cycle(2, 2, 3)),
        ("xyabcabcabc", Cycle(2, 3, 3)),
        ("abababx", None),
        ("babababab", Cycle(0, 2, 4)),
        ("abcdeabcdeabcde", None),  # longer than four moves
    ],
)
def test_a_cycle_at_the_end_is_found_with_its_entry(moves: str, found: Cycle | None) -> None:
    assert cycle_at_end(moves, repeats=3, longest=4) == found


def test_a_cycle_that_was_left_again_is_the_first_one() -> None:
    assert first_cycle("xabababyzccc", repeats=3, longest=4) == Cycle(1, 2, 3)
    assert first_cycle("xababyz", repeats=3, longest=4) is None


@given(st.text("ab", max_size=5), st.text("cde", min_size=1, max_size=3), st.integers(2, 4))
def test_any_cycle_put_in_is_found_not_later_than_it_was_put(before: str, cycle: str, repeats: int) -> None:
    moves = before + cycle * repeats
    found = cycle_at_end(moves, repeats, longest=3)
    assert found is not None
    assert found.repeats >= repeats
    assert all(moves[index] == moves[index + found.length] for index in range(found.start, len(moves) - found.length))


def test_what_is_no_cycle_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="at least twice"):
        cycle_at_end("aa", repeats=1, longest=1)


def test_the_same_ending_is_counted() -> None:
    assert [same_ending(actions) for actions in ("", "a", "ab", "abb", "aaa")] == [0, 1, 1, 2, 3]


def test_an_action_is_the_same_whatever_was_thought_and_noted() -> None:
    call = 'do(action="Click", element="3")'
    for text in (
        call,
        f"# Element: Cart\n# Note: 7 items\n{call}",
        f"<think>it is # 3</think><answer>\n# Element: Cart\n{call}\n</answer>",
        f"```python\n{call}\n```",
    ):
        assert bare_action(text) == call
    assert bare_action('do(action="Type", argument="# 3", element="1")') == (
        'do(action="Type", argument="# 3", element="1")'
    )


def test_states_differ_by_page_and_by_address() -> None:
    assert state_hash("/a", "text") == state_hash("/a", "text")
    assert len({state_hash("/a", "text"), state_hash("/b", "text"), state_hash("/a", "other")}) == 3
    assert state_hash("/a", "\ud800")  # what pages may contain and UTF-8 may not
