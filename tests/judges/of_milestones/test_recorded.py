"""Milestones checked on recorded episodes: what is read back from a page's text and from an action's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from judges.milestones import Acted
from judges.of_milestones.recorded import action_of, milestones_of_record, page_of, with_milestones
from records.environment import Element
from records.episodes import FinalState, Milestone, Source, Step, Termination, Trajectory

IDS = np.zeros(1, np.int32)
PAGE = """@ Cart
link Home 0
searchbox Search = kettle 1
select Sort by = Price (Name | Price) 2
link Museum (Northam) 3
# Your cart
Kettle | Blue | $12
link View 4
, delivered tomorrow
button Buy disabled"""


def step(action: str, element: str | None = None, observation: str = PAGE, url: str = "__SHOP__/cart") -> Step:
    logprobs = np.zeros(1, np.float32)
    return Step(0, url, observation, IDS, IDS, logprobs, 0, 1.0, action, (), element=element)


def episode(*steps: Step) -> Trajectory:
    return Trajectory(
        "e", "t", "shop.t", "shop", "test", "Buy it", Source.ROLLOUT, 1, seed=0, steps=steps,
        termination=Termination.EXIT, answer="done", outcome=1.0, failure=None,
    )  # fmt: skip


def test_elements_are_read_back_with_values_and_options() -> None:
    assert page_of(step("")).elements == (
        Element(0, "link", "Home"),
        Element(1, "searchbox", "Search", "kettle"),
        Element(2, "select", "Sort by", "Price", ("Name", "Price")),
        Element(3, "link", "Museum (Northam)"),
        Element(4, "link", "View"),
    )


def test_text_is_read_back_as_a_person_reads_it() -> None:
    page = page_of(step(""))
    assert page.title == "Cart"
    assert "Your cart Kettle Blue $12 View, delivered tomorrow" in page.page_text
    assert page.url == "__SHOP__/cart"


@pytest.mark.parametrize(
    ("text", "element", "acted"),
    [
        ('# Element: x\ndo(action="Click", element="4")', "link View", Acted("click", "View")),
        ('do(action="Type", argument="a \\"b\\"", element="1")', "searchbox Search", Acted("type", "Search", 'a "b"')),
        ('do(action="Select Dropdown Option", argument="Name", element="2")', "select Sort by",
         Acted("select", "Sort by", "Name")),
        ('exit(message="done")', None, Acted("exit", "", "done")),
        ("go_backward()", None, Acted("go_backward")),
        ("I would click the link", None, Acted("")),
    ],
)  # fmt: skip
def test_actions_are_read_back(text: str, element: str | None, acted: Acted) -> None:
    assert action_of(step(text, element)) == acted


def test_what_did_not_parse_did_nothing() -> None:
    wrong = replace(step('do(action="Click", element="99")'), parse_error="no such element")
    assert action_of(wrong) == Acted("")


def test_what_was_refused_did_nothing() -> None:
    clicked = step('do(action="Click", element="4")', "link View")
    viewed = [Milestone("View is clicked", {"acted": {"kind": "click", "name": "View"}})]
    assert milestones_of_record(episode(clicked), viewed).tolist() == [[False], [True]]
    refused = replace(clicked, refused=True)
    assert action_of(refused) == Acted("")
    assert milestones_of_record(episode(refused), viewed).tolist() == [[False], [False]]


def test_milestones_are_checked_step_by_step_and_stay_reached() -> None:
    milestones = [
        Milestone("the cart is open", {"url": "__SHOP__/cart"}),
        Milestone("it was bought", {"acted": {"kind": "click", "name": "Buy"}}),
        Milestone("only a judge can tell", {}),
    ]
    played = episode(
        step('do(action="Click", element="0")', "link Cart", "@ Home", "__SHOP__/"),
        step('do(action="Click", element="5")', "button Buy"),
        step('exit(message="done")', None, "@ Home", "__SHOP__/"),
    )
    done = milestones_of_record(played, milestones)
    assert done.tolist() == [
        [False, False, False],
        [True, False, False],
        [True, True, False],
        [True, True, False],
    ]
    cart = FinalState("__SHOP__/cart", "", np.zeros(1, np.int32))
    at_cart = replace(played, steps=played.steps[:1], final_state=cart)
    assert milestones_of_record(at_cart, milestones)[-1].tolist() == [True, False, False]
    assert not milestones_of_record(replace(at_cart, final_state=None), milestones).any()
    shown = with_milestones(played, done)
    assert [one.milestones for one in shown.steps] == [(False,) * 3, (True, False, False), (True, True, False)]
    assert shown.final_milestones == (True, True, False)
