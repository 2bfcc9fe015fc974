"""Pairs of actions and milestones, and the threshold that tells them apart: worked by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from judges.of_milestones.checker import Known
from judges.of_milestones.labelled_pairs import LabelledPairs, labelled_pairs
from tests.judges.of_milestones.test_recorded import episode, step


class Letters:
    """An encoder whose similarity is 1 for texts of the same last word, else 0; counts what it is asked."""

    name = "letters"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        rows = np.zeros((len(texts), 4), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[["Home", "Cart", "Pay"].index(text.split()[-1]) if text.split() else 3] = 1.0
        return rows


def click(name: str) -> object:
    return step('do(action="Click", element="0")', f"link {name}")


def pairs_of(*reached: Sequence[bool]) -> LabelledPairs:
    played = episode(click("Home"), step("Let me think."), click("Cart"), click("Home"), click("Pay"), click("Pay"))
    return labelled_pairs([Known(played, ("To Cart", "To Pay"), np.array(reached))], Letters())


def test_each_action_is_held_against_the_milestone_that_is_next() -> None:
    no, first, both = (False, False), (True, False), (True, True)
    found = pairs_of(no, no, no, first, first, both, both)
    # Home and Cart against the first, Home and Pay against the second; no pair for a thought, none after the last.
    assert found.similarity.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert found.reached.tolist() == [False, True, False, True]
    assert len(set(found.templates)) == 1


def test_an_action_that_reaches_another_milestone_than_the_next_is_no_hit() -> None:
    no, second = (False, False), (False, True)
    found = pairs_of(no, no, no, second, second, second, second)
    assert found.reached.tolist() == [False] * 5


def test_texts_are_encoded_once() -> None:
    encoder = Letters()
    known = Known(episode(click("Home"), click("Home")), ("To Pay",), np.zeros((3, 1), dtype=np.bool_))
    labelled_pairs([known, known], encoder)
    assert sorted(encoder.asked) == ["Click the link Home", "To Pay"]


def test_strangers_are_the_milestones_of_other_episodes_under_ones_own_labels() -> None:
    reached = np.array([[False], [False], [True]])
    known = [
        Known(episode(click("Home"), click(goal)), (f"To {goal}",), reached) for goal in ("Cart", "Pay") for _ in "1234"
    ]
    own, other = (labelled_pairs(known, Letters(), strangers=seed) for seed in (None, 0))
    assert own.similarity.tolist() == [0.0, 1.0] * 8
    assert own.accuracy(0.5) == 1.0
    assert other.reached.tolist() == own.reached.tolist()
    assert 0 < other.similarity.sum() < 8


def test_accuracy_is_the_mean_of_both_kinds() -> None:
    pairs = LabelledPairs(
        np.array([0.9, 0.3, 0.4, 0.1, 0.2]), np.array([True, True, False, False, False]), np.array(["t"] * 5)
    )
    assert pairs.accuracy(0.5) == (1 / 2 + 3 / 3) / 2
    assert pairs.accuracy(0.25) == pytest.approx((2 / 2 + 2 / 3) / 2)
    assert pairs.accuracy(0.95) == pairs.accuracy(0.01) == 0.5
    assert 0.2 <= pairs.best_threshold() < 0.3


def test_one_kind_of_pair_calibrates_nothing() -> None:
    pairs = LabelledPairs(np.array([0.9, 0.3]), np.array([False, False]), np.array(["t", "t"]))
    with pytest.raises(ValueError, match="reach their milestone and others, found 2 alike"):
        pairs.best_threshold()
