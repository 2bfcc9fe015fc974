"""Milestone checks: each kind, their combination, monotonicity, and what a malformed one says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.milestones import Acted, check, reached, validate, validate_task
from records.environment import Action, Element, Observation
from records.episodes import Milestone, Task

CART = Observation(
    text="",
    url="__SHOP__/cart?coupon=TEA",
    title="Cart",
    page_text="Your cart Blue Kettle $12.50 Total $12.50",
    elements=(Element(0, "link", "Checkout"), Element(1, "select", "Quantity", "2", ("1", "2"))),
)
HISTORY = [Acted("type", "Search", "Blue Kettle"), Acted("click", "Add to cart"), Acted("go_backward")]


@pytest.mark.parametrize(
    ("milestone_check", "holds"),
    [
        ({"url": "__SHOP__/cart*"}, True),
        ({"url": "__SHOP__/cart"}, False),
        ({"url": "__SHOP__/cart?coupon=*"}, True),
        ({"url": "__SHOP__/CART*"}, False),
        ({"text": ["blue kettle", "TOTAL"]}, True),
        ({"text": ["blue kettle", "red"]}, False),
        ({"element": {"name": "Checkout"}}, True),
        ({"element": {"name": "checkout"}}, False),
        ({"element": {"name": "Checkout", "role": "button"}}, False),
        ({"element": {"name": "Quantity", "role": "select", "value": "2"}}, True),
        ({"element": {"name": "Quantity", "value": "1"}}, False),
        ({"acted": {"kind": "click"}}, True),
        ({"acted": {"kind": "click", "name": "Add to cart"}}, True),
        ({"acted": {"kind": "click", "name": "Search"}}, False),
        ({"acted": {"kind": "type", "argument": " blue kettle"}}, True),
        ({"acted": {"kind": "click", "argument": ""}}, False),
        ({"acted": {"kind": "go_backward", "name": ""}}, True),
        ({"all": [{"url": "*cart*"}, {"text": ["kettle"]}]}, True),
        ({"all": [{"url": "*cart*"}, {"text": ["red"]}]}, False),
        ({"any": [{"url": "*orders*"}, {"text": ["kettle"]}]}, True),
        ({"any": [{"url": "*orders*"}, {"all": [{"text": ["red"]}]}]}, False),
    ],
)
def test_checks(milestone_check, holds):
    assert check(milestone_check, CART, HISTORY) is holds


def test_what_the_agent_calls_an_element_does_not_count():
    lied = Action("click", element_id=0, comment="Place order")
    assert Acted.of(lied, CART.elements[0]) == Acted("click", "Checkout", None)
    assert Acted.of(Action("exit", argument="done"), None) == Acted("exit", "", "done")


@given(st.lists(st.booleans(), min_size=2, max_size=2))
def test_milestones_never_come_undone(previous):
    milestones = (Milestone("in the cart", {"url": "*cart*"}), Milestone("ordered", {"url": "*orders*"}))
    now = reached(milestones, previous, CART, HISTORY)
    assert now == (True, previous[1])


def test_the_first_state_has_no_earlier_milestones():
    milestones = (Milestone("in the cart", {"url": "*cart*"}), Milestone("ordered", {"url": "*orders*"}))
    assert reached(milestones, (), CART, []) == (True, False)
    with pytest.raises(ValueError, match="expected 2 earlier values, found 1"):
        reached(milestones, (True,), CART, [])


@pytest.mark.parametrize(
    ("malformed", "message"),
    [
        (None, r"check: expected an object with one of .*found None"),
        ({}, "expected an object with one of"),
        ({"url": "a", "text": ["b"]}, "expected an object with one of"),
        ({"uri": "a"}, r"expected one of \['acted', 'all', 'answer', 'any', 'element', 'text', 'url'\], found 'uri'"),
        ({"url": ""}, "check.url: expected a non-empty string"),
        ({"text": "kettle"}, "check.text: expected a non-empty list, found 'kettle'"),
        ({"text": ["a", 3]}, r"check.text\[1\]: expected a non-empty string, found 3"),
        ({"all": []}, "check.all: expected a non-empty list"),
        ({"all": [{"any": [{"url": "a"}, {"url": 1}]}]}, r"check.all\[0\].any\[1\].url: expected a non-empty string"),
        ({"element": {"role": "link"}}, "check.element: expected an object with name and optionally role, value"),
        ({"element": {"name": "a", "colour": "b"}}, "check.element: expected an object with name"),
        ({"acted": {"name": "a"}}, "check.acted: expected an object with kind"),
        ({"acted": {"kind": "click", "argument": 3}}, "check.acted.argument: expected a string, found 3"),
    ],
)
def test_malformed_checks_say_where_and_what(malformed, message):
    with pytest.raises(ValueError, match=message):
        validate(malformed)
    with pytest.raises(ValueError, match="correct the milestone's check"):
        check(malformed, CART, HISTORY)


def test_a_task_has_four_well_formed_milestones():
    good = Milestone("cart", {"url": "*cart*"})

    def task(*milestones: Milestone) -> Task:
        return Task("shop.1", ("shop",), "Buy", "__SHOP__/", {}, "shop.buy", milestones=milestones)

    validate_task(task(good, good, good, good))
    with pytest.raises(ValueError, match="task shop.1: expected 4 milestones, found 1"):
        validate_task(task(good))
    with pytest.raises(ValueError, match=r"task shop.1: milestones\[3\].check.url"):
        validate_task(task(good, good, good, Milestone("bad", {"url": 1})))
