"""When an agent counts as stuck, worked by hand and as properties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from records.episodes import Source, Step, Termination, Trajectory
from replay.stuck import Move, Stuck, share_reached, state_key, stuck, stuck_events


def moves(text: str, progress: float | None = None) -> list[Move]:
    """One move for each letter: the letter is its state and its action."""
    return [Move(letter, letter, progress) for letter in text]


@pytest.mark.parametrize("taken", ["aa", "abab", "xabab", "abcabc", "abaa"])
def test_what_was_gone_through_twice_is_a_cycle(taken: str) -> None:
    assert stuck(moves(taken), None) is Stuck.CYCLE


@pytest.mark.parametrize("taken", ["", "a", "aba", "ababc", "abcab"])
def test_what_was_not_is_none(taken: str) -> None:
    assert stuck(moves(taken), None) is None


def test_the_same_action_elsewhere_is_no_cycle() -> None:
    assert stuck([Move("page 1", "next", None), Move("page 2", "next", None)], None) is None


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        ([0.25, 0.25], 0.25, None),  # two steps only
        ([0.25, 0.25, 0.25], 0.25, Stuck.STALL),
        ([0.25, 0.25, 0.25], 0.2699, Stuck.STALL),
        ([0.25, 0.25, 0.25], 0.5, None),
        ([0.0, 0.25, 0.25], 0.25, None),  # it rose within the window
        ([0.0, 0.25, 0.25, 0.25], 0.25, Stuck.STALL),
        ([0.5, 0.5, 0.5], 0.25, Stuck.STALL),  # a critic's potential may fall
    ],
)
def test_a_stall_is_a_rise_below_epsilon_over_three_steps(before: list[float], now: float, found: Stuck | None) -> None:
    taken = [Move(f"s{i}", "a", value) for i, value in enumerate(before)]
    assert stuck(taken, now) == found


def test_a_task_without_milestones_never_stalls() -> None:
    assert share_reached(()) is None
    assert stuck(moves("abcdefg"), None) is None
    assert stuck(moves("abcdefgg"), None) is Stuck.CYCLE


def test_letter_case_space_and_clocks_do_not_make_another_page() -> None:
    one = state_key("__SHOP__/", "@ Shop\nnow 12:04:59\nposted 3 minutes ago\nupdated 2024-01-02T03:04:05Z")
    assert one == state_key("__SHOP__/", "@ shop now 1:15\nposted 1 minute ago  updated 2025-11-12T13:14")
    assert one != state_key("__SHOP__/cart", "@ Shop\nnow 12:04:59\nposted 3 minutes ago\nupdated 2024-01-02T03:04:05Z")
    assert state_key("u", "2 items") != state_key("u", "3 items")


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), min_size=1, max_size=4))
def test_whatever_is_done_twice_is_a_cycle_wherever_it_begins(head: list[str], body: list[str]) -> None:
    assert stuck(moves("".join(head + body + body)), None) is Stuck.CYCLE


@given(st.lists(st.floats(0, 1), min_size=3, max_size=12), st.integers(1, 5), st.floats(0.001, 0.5))
def test_enough_progress_is_never_a_stall(values: list[float], window: int, epsilon: float) -> None:
    taken = [Move(str(i), "a", value) for i, value in enumerate(values)]
    found = stuck(taken, 1.0, epsilon=epsilon, window=window)
    expected = len(values) >= window and 1.0 - values[-window] < epsilon
    assert (found is Stuck.STALL) == expected


def episode(states: str, reached: list[int], answer: str | None = None) -> Trajectory:
    """An episode over four milestones: the page of each step by a letter, and how many are reached before each step."""

    def vector(count: int) -> tuple[bool, ...]:
        return tuple(i < count for i in range(4))

    steps = tuple(
        Step(i, "u", state, np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32), 0, 0.0, "wait",
             vector(reached[i]))
        for i, state in enumerate(states)
    )  # fmt: skip
    ended = Termination.MAX_STEPS if answer is None else Termination.EXIT
    return Trajectory("e", "t", "x.y", "x", "test", "do", Source.EVALUATION, 0, 0, steps, ended, answer, 0.0, None,
                      final_milestones=vector(reached[-1]))  # fmt: skip


def test_events_of_a_recorded_episode_begin_anew_after_each() -> None:
    stalled = episode("abcdefg", [0, 1, 1, 1, 1, 1, 1, 1])
    assert stuck_events(stalled) == [(4, Stuck.STALL), (7, Stuck.STALL)]
    assert stuck_events(replace(stalled, answer="42")) == [(4, Stuck.STALL)]
    assert stuck_events(episode("aabcd", [0, 0, 1, 2, 3, 4])) == [(2, Stuck.CYCLE)]
    assert stuck_events(episode("abcd", [0, 1, 2, 3, 4], "done")) == []
