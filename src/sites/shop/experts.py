"""The skills that the shop's scripted experts are put together from.

Owns finding, choosing, form filling and checking out. Experts read pages and the task's parameters,
never the site's state; ``rivals`` names what a careless person might have taken instead.
"""

from __future__ import annotations

import re

from records.environment import Observation
from sites.task_template import Intent, Skill

PRODUCT = r"[A-Z][a-z]+ [A-Z][a-z]+ [A-Z][a-z]+"
"""What a product's name looks like."""
ORDER = r"Order \d+"
ANY = ".*"


def click(name: str, role: str | None = None, rivals: str | None = None) -> Skill:
    """Click the element of this name."""
    return (yield Intent("click", name, role, rivals=rivals))


def write(fields: dict[str, str]) -> Skill:
    """Type a value into each of the named fields."""
    seen: Observation | None = None
    for name, value in fields.items():
        seen = yield Intent("type", name, "textbox", argument=value, rivals=r"\d+" if value.isdigit() else None)
    if seen is None:
        raise ValueError("expected at least one field to write into, found none")
    return seen


def choose(name: str, option: str) -> Skill:
    """Choose an option of a select."""
    return (yield Intent("select", name, "select", argument=option, rivals=ANY))


def finish(message: str = "done", rivals: str | None = None) -> Skill:
    """End the episode, with an answer where one was asked for."""
    return (yield Intent("exit", argument=message, rivals=rivals))


def search_for(name: str) -> Skill:
    """Search for a product."""
    return (yield Intent("search", "Search", "searchbox", argument=name))


def open_product(name: str) -> Skill:
    """Search for a product and open its page."""
    yield from search_for(name)
    return (yield from click(name, "link", PRODUCT))


def open_category(category: str, sort: str = "", kind: str = "") -> Skill:
    """Open a category from the home page, filtered and sorted where asked."""
    seen = yield from click(category, "link")
    if kind:
        yield from choose("Kind", kind)
    if sort:
        yield from choose("Sort by", sort)
    if kind or sort:
        seen = yield from click("Apply", "button")
    return seen


def open_first(seen: Observation) -> Skill:
    """Open the first product that is listed."""
    first = next((e.name for e in seen.elements if e.role == "link" and re.fullmatch(PRODUCT, e.name)), None)
    if first is None:
        raise LookupError(f"expected a list of products, found none on {seen.url}")
    return (yield from click(first, "link", PRODUCT))


def add_to_cart(colour: str = "", size: str = "", quantity: int = 1) -> Skill:
    """Add the product of this page to the cart."""
    if colour:
        yield from choose("Colour", colour)
    if size:
        yield from choose("Size", size)
    if quantity != 1:
        yield from write({"Quantity": str(quantity)})
    return (yield from click("Add to cart", "button"))


def check_out(address: str = "", shipping: str = "") -> Skill:
    """Go from the cart through all pages of the checkout; what is not given stays as the shop proposes."""
    yield from click("Checkout", "link")
    if address:
        yield from click(address, "radio", ANY)
    yield from click("Continue", "button")
    return (yield from ship_and_pay(shipping))


def ship_and_pay(shipping: str = "") -> Skill:
    """The checkout from the shipping page on."""
    if shipping:
        yield from click(shipping, "radio", ANY)
    yield from click("Continue", "button")
    return (yield from click("Place order", "button"))


def open_order(number: int, page: int) -> Skill:
    """Open a past order that is on this page (from 0) of the list."""
    yield from click("Orders", "link")
    for _ in range(page):
        yield from click("Next page", "link")
    return (yield from click(f"Order {number}", "link", ORDER))
