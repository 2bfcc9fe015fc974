"""Actions held against milestones by similarity: the pointer worked by hand, sentences of actions, a real encoder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judges.kinds import Judges
from judges.of_milestones.actions import action_sentence, page_lines
from judges.of_milestones.encoder import encoder_named
from judges.of_milestones.matching import filled, match_episode, match_in_order
from records.deadline import Deadline
from records.episodes import Milestone, Task
from records.labels import LabelSubject, misfit
from tests.judges.of_milestones.test_recorded import episode, step


def test_the_pointer_worked_by_hand() -> None:
    # Two milestones. Step 0 is like the second only, which is not its turn; step 1 hits the first, step 2 is just not
    # like enough, step 3 hits the second, step 4 is like both and hits nothing any more.
    similarity = np.array([[0.1, 0.9], [0.8, 0.9], [0.9, 0.75], [0.2, 0.76], [0.9, 0.9]])
    found = match_in_order(similarity)
    assert found.hits.tolist() == [-1, 0, -1, 1, -1]
    assert found.rewards.tolist() == [0, 0.8, 0, 0.76, 0]
    assert found.reached.tolist() == [
        [False, False], [False, False], [True, False], [True, False], [True, True], [True, True]
    ]  # fmt: skip
    assert found.count == 2


def test_a_step_hits_one_milestone_even_where_it_is_like_the_next_one_too() -> None:
    assert match_in_order(np.array([[0.9, 0.9], [0.0, 0.9]])).hits.tolist() == [0, 1]


def test_another_threshold_is_another_answer() -> None:
    similarity = np.array([[0.6]])
    assert (match_in_order(similarity).count, match_in_order(similarity, 0.5).count) == (0, 1)


def test_no_milestones_and_no_steps() -> None:
    assert match_in_order(np.zeros((3, 0))).reached.shape == (4, 0)
    assert match_in_order(np.zeros((0, 2))).count == 0


@given(arrays(np.float64, st.tuples(st.integers(0, 8), st.integers(0, 4)), elements=st.floats(-1, 1)))
def test_milestones_are_hit_in_order_and_stay_reached(similarity: np.ndarray) -> None:
    found = match_in_order(similarity)
    hit = [k for k in found.hits.tolist() if k >= 0]
    assert hit == list(range(found.count))
    assert (found.reached[1:] >= found.reached[:-1]).all()
    assert ((found.rewards > 0.75) == (found.hits >= 0)).all()


@pytest.mark.parametrize(
    ("action", "element", "sentence"),
    [
        ('# Element: nonsense\ndo(action="Click", element="4")', "link View", "Click the link View"),
        ('do(action="Type", argument="Ann", element="1")', "textbox Name", "Type Ann into the textbox Name"),
        ('do(action="Select Dropdown Option", argument="Price", element="2")', "select Sort by",
         "Choose Price as the select Sort by"),
        ('do(action="Search", argument="kettle", element="1")', "searchbox Search", "Search for kettle"),
        ("go_backward()", None, "Go back"),
        ('exit(message="42")', None, "Answer 42"),
        ("Let me think.", None, ""),
    ],
)  # fmt: skip
def test_actions_are_said_in_a_sentence(action: str, element: str | None, sentence: str) -> None:
    assert action_sentence(step(action, element)) == sentence


def test_pages_are_said_in_lines_without_roles_and_numbers() -> None:
    lines = page_lines(step(""))
    assert {"Cart", "Your cart", "Kettle Blue $12", "Home", "Search: kettle", "Sort by: Price"} <= set(lines)
    assert not any(line.startswith(("link ", "select ")) for line in lines)


def test_a_real_encoder_finds_the_action_in_its_turn() -> None:
    played = episode(
        step('do(action="Click", element="0")', "link Home"),
        step('do(action="Search", argument="Blue Kettle", element="1")', "searchbox Search"),
        step('do(action="Click", element="5")', "button Add to cart"),
        step('exit(message="done")'),
    )
    goals = [filled("Search for <product>", {"product": "Blue Kettle"}), "Click the button Add to cart"]
    assert match_episode(played, goals, encoder_named()).hits.tolist() == [-1, 0, 1, -1]
    assert match_episode(played, goals[::-1], encoder_named()).hits.tolist() == [-1, -1, 0, -1]


async def test_its_judge_labels_what_actions_hit_and_names_its_threshold() -> None:
    played = episode(
        step('do(action="Click", element="0")', "link Home"),
        step('do(action="Click", element="5")', "button Add to cart"),
    )
    said = ("Click the button Add to cart", "Click the button Order")
    task = Task("t", ("shop",), "Buy it", "__SHOP__/", {}, "t", milestones=tuple(Milestone(one, {}) for one in said))
    strict = await Judges().of_episodes("milestone_matching").label(played, task, Deadline(5))
    assert not misfit(strict, played, LabelSubject.MILESTONES)
    assert strict.decided.tolist() == [[False, False], [False, False], [True, False]]
    found = match_episode(played, said, encoder_named())
    np.testing.assert_allclose(
        strict.values[-1], [found.rewards[1], 0], rtol=1e-6, err_msg="a label says how like its hits were"
    )
    options = {"milestone_matching": {"threshold": 0.2}}
    loose = await Judges(options).of_episodes("milestone_matching").label(played, task, Deadline(5))
    assert loose.decided.tolist() == [[False, False], [True, False], [True, True]]
    assert strict.prompt != loose.prompt


@pytest.mark.parametrize("threshold", [1.0, 0.0])
def test_a_threshold_that_no_cosine_crosses_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold must be above 0 and below 1"):
        Judges({"milestone_matching": {"threshold": threshold}}).of_episodes("milestone_matching")


def test_placeholders_are_filled_by_name_and_others_stay() -> None:
    assert filled("Type <Name> into <the field>", {"name": "Ann"}) == "Type Ann into <the field>"
