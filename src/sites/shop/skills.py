"""The skills of the shop's experts, and the milestones that purchases share."""

from __future__ import annotations

import re

from records.environment import Observation
from sites.checks import Check, Milestones, both, has, shows
from sites.experts import Actions, read
from sites.shop.checks import at, cart_shows, product_path
from sites.shop.data import LABELS
from sites.shop.words import RANKS
from sites.skills import ANY, choose, click, open_listed, search, skill, write

PRODUCT = r"[A-Z][a-z]+ [A-Z][a-z]+ [A-Z][a-z]+"
"""What a product's name looks like."""


@skill(lambda email, password: shows("You are logged in"))
def log_in(email: str, password: str) -> Actions:
    """Log in as another customer."""
    yield from click("Log in", "link")
    yield from write({"Email": email, "Password": password})
    return (yield from click("Log in", "button"))


@skill(lambda name: at(product_path(name)))
def open_product(name: str) -> Actions:
    """Search for a product and open its page."""
    yield from search(name)
    return (yield from click(name, "link", PRODUCT))


def _listed(category: str, sort: str = "", kind: str = "") -> Check:
    values = dict(RANKS.values())
    query = [*([f"kind={kind.lower()}"] if kind else []), *([f"sort={values[sort]}"] if sort else [])]
    return both(*(at(f"/category/{category.lower()}?*{part}*") for part in query))


@skill(_listed)
def show_category(category: str, sort: str = "", kind: str = "") -> Actions:
    """Open a category from the home page and have it filtered or sorted."""
    yield from click(category, "link")
    if kind:
        yield from choose("Kind", kind)
    if sort:
        yield from choose("Sort by", sort)
    return (yield from click("Apply", "button"))


@skill(lambda category, rank, kind="": at("/product/*"))
def open_ranked(category: str, rank: str, kind: str = "") -> Actions:
    """Open the product that category, rank and kind mean: the first of a sorted list."""
    seen = yield from show_category(category, RANKS[rank][0], kind)
    first = next((e.name for e in seen.elements if e.role == "link" and re.fullmatch(PRODUCT, e.name)), None)
    if first is None:
        raise LookupError(f"expected a list of products, found none on {seen.url}")
    return (yield from click(first, "link", PRODUCT))


@skill(lambda colour="", size="", quantity=1: cart_shows(*(part for part in (colour, size) if part), "Items: "))
def add_to_cart(colour: str = "", size: str = "", quantity: int = 1) -> Actions:
    """Add the product of this page to the cart."""
    if colour:
        yield from choose("Colour", colour)
    if size:
        yield from choose("Size", size)
    if quantity != 1:
        yield from write({"Quantity": str(quantity)})
    return (yield from click("Add to cart", "button"))


@skill(lambda quantity: both(at("/cart"), has("Quantity", str(quantity))))
def set_quantity(quantity: int) -> Actions:
    """In the cart: change how many pieces there are of its first product."""
    yield from write({"Quantity": str(quantity)})
    return (yield from click("Update", "button"))


@skill(lambda product: shows(f"{product} is on your wish list"))
def wish(product: str) -> Actions:
    """Put a product on the wish list."""
    yield from open_product(product)
    return (yield from click("Add to wish list", "button"))


@skill(lambda product: cart_shows(product))
def move_wish(product: str) -> Actions:
    """Move a product from the wish list to the cart."""
    yield from click("Wish list", "link")
    return (yield from click(f"Move {product}", "button", rf"Move {PRODUCT}"))


@skill(lambda address="": both(at("/checkout/*"), shows(f"Deliver to {address}" if address else "Deliver to")))
def deliver_to(address: str = "") -> Actions:
    """In the checkout: choose an address, else leave the one that the shop proposes."""
    if address:
        yield from click(address, "radio", ANY)
    return (yield from click("Continue", "button"))


@skill(lambda label, street, city, postcode: deliver_to.reached(label))
def deliver_to_new(label: str, street: str, city: str, postcode: str) -> Actions:
    """In the checkout: add an address and choose it."""
    yield from _add_address(label, street, city, postcode)
    return (yield from deliver_to())


@skill(lambda shipping="": both(at("/checkout/payment"), shows(*([shipping] if shipping else ["Shipping: "]))))
def ship_by(shipping: str = "") -> Actions:
    """In the checkout: choose a shipping method, else leave the one that the shop proposes."""
    if shipping:
        yield from click(shipping, "radio", ANY)
    return (yield from click("Continue", "button"))


@skill(lambda: at("/checkout/placed/*"))
def place_order() -> Actions:
    """At the end of the checkout: place the order."""
    return (yield from click("Place order", "button"))


@skill(lambda address="", shipping="": place_order.reached())
def check_out(address: str = "", shipping: str = "") -> Actions:
    """Go from the cart through all of the checkout; what is not given stays as the shop proposes."""
    yield from click("Checkout", "link")
    yield from deliver_to(address)
    yield from ship_by(shipping)
    return (yield from place_order())


def bought(ready: Check, address: str, shipping: str) -> Milestones:
    """Milestones from a filled cart to the placed order; ``ready`` says that the cart is as asked."""
    return (
        ("The cart is as asked", ready),
        ("The address is chosen", deliver_to.reached(address)),
        ("The shipping method is chosen", ship_by.reached(shipping)),
        ("The order is placed", place_order.reached()),
    )


@skill(lambda number: at(f"/orders/{number}"))
def open_order(number: int) -> Actions:
    """Open a past order."""
    seen = yield from click("Orders", "link")
    return (yield from open_listed(seen, f"Order {number}", r"Order \d+"))


@skill(lambda number, reason: both(at(f"/orders/{number}"), shows("Cancelled", reason)))
def cancel_order(number: int, reason: str) -> Actions:
    """Open a past order and cancel it."""
    yield from open_order(number)
    yield from click("Cancel order", "link")
    yield from choose("Reason", reason)
    return (yield from click("Confirm", "button"))


@skill(lambda: cart_shows("is in the cart"))
def order_again() -> Actions:
    """On a past order: put its items into the cart."""
    return (yield from click("Order again", "button"))


def _address_is(label: str, street: str, city: str, postcode: str = "") -> Check:
    return both(at("/addresses"), shows(f"{label}: {street}, {city}"))


@skill(_address_is)
def add_address(label: str, street: str, city: str, postcode: str) -> Actions:
    """On the list of addresses: add one."""
    return (yield from _add_address(label, street, city, postcode))


@skill(_address_is)
def edit_address(label: str, street: str, city: str) -> Actions:
    """On the list of addresses: change one."""
    yield from click(f"Edit {label}", "link", "Edit (" + "|".join(LABELS) + ")")
    yield from write({"Street": street, "City": city})
    return (yield from click("Save address", "button"))


@skill(lambda product, *rest: both(at(f"{product_path(product)}/reviews"), shows("Thank you for your review")))
def write_review(product: str, stars: str, title: str, text: str) -> Actions:
    """Find a product and review it."""
    yield from open_product(product)
    yield from click("Write a review", "link")
    yield from choose("Stars", stars)
    yield from write({"Title": title, "Text": text})
    return (yield from click("Send review", "button"))


@skill(lambda email, frequency: shows(f"Subscribed: {email}, {frequency}"))
def subscribe(email: str, frequency: str) -> Actions:
    """Subscribe to the newsletter from the account's page."""
    yield from click("Newsletter", "link")
    yield from write({"Email": email})
    yield from choose("Frequency", frequency)
    return (yield from click("Subscribe", "button"))


@skill(lambda subject, text: both(at("/messages"), shows(f"{subject}: {text}")))
def send_message(subject: str, text: str) -> Actions:
    """Send the shop a message."""
    yield from click("Contact", "link")
    yield from choose("Subject", subject)
    yield from write({"Text": text})
    return (yield from click("Send message", "button"))


def listed(seen: Observation, name: str, fact: str) -> str:
    """Return the price or the rating of a product in the search results."""
    return read(seen, {"price": rf"{name} (\$\d+),", "rating": rf"{name} \$\d+, (\d\.\d) stars"}[fact])


def _add_address(label: str, street: str, city: str, postcode: str) -> Actions:
    yield from click("New address", "link")
    yield from write({"Label": label, "Street": street, "City": city, "Postcode": postcode})
    return (yield from click("Save address", "button"))
