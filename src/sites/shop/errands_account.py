"""Errands about a customer's own things: gifts, orders that are replaced, settings, reviews.

Owns templates of the collection ``errands`` (see ``sites.collections``); their pieces are the skills and checks
of the shop's other templates.
"""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.shop import checks as c
from sites.shop import experts, sampling
from sites.shop.data import CITIES, LABELS, PROCESSING, REASONS, STREETS, ShopData
from sites.shop.tasks_catalogue import product_path
from sites.shop.tasks_writing import OPINIONS, STARS, TEXTS, reviewed, sample_newsletter, write_review
from sites.task_template import Expert, Parameters, TaskTemplate

_SUBJECT = "Delivery"
_WISHES = (
    "Wrap it as a gift",
    "It is a gift, leave out the bill",
    "Add a card: Happy birthday",
    "Add a card: Get well soon",
    "Add a card: Thank you",
)
_PLACED = c.at("/checkout/placed/*")


def _sample_gift(data: ShopData, rng: random.Random) -> Parameters:
    product = sampling.product(data, rng)
    return {
        "product": product.name,
        "colour": sampling.colour(product, rng),
        "shipping": sampling.shipping(rng),
        **sampling.new_address(rng),
        "subject": _SUBJECT,
        "text": rng.choice(_WISHES),
    }


def _judge_gift(p: Parameters, data: ShopData) -> checks.Evaluation:
    where = f"{p['label']}, {p['street']}, {p['city']}, {p['postcode']}"
    line = f"1 x {p['product']}, {p['colour']}"
    order = c.newest_order(line, items=1, address=where, shipping=p["shipping"])
    return checks.pages(*order, c.equals("/messages", ".message", f"{p['subject']}: {p['text']}"))


def _gift_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    addressed = checks.both(c.at("/checkout/*"), checks.shows(f"Deliver to {p['label']}"))
    return checks.milestones(
        ("The product is in the cart", checks.both(c.at("/cart"), checks.shows(f"{p['product']}, {p['colour']}"))),
        ("The new address is chosen", addressed),
        ("The order is placed", _PLACED),
        ("The message is sent", checks.both(c.at("/messages"), checks.shows(f"{p['subject']}: {p['text']}"))),
    )


def _send_gift(task: Task) -> Expert:
    p = task.parameters
    yield from experts.open_product(p["product"])
    yield from experts.add_to_cart(p["colour"])
    yield from experts.click("Checkout", "link")
    yield from experts.click("New address", "link")
    yield from experts.write({"Label": p["label"], "Street": p["street"], "City": p["city"], "Postcode": p["postcode"]})
    yield from experts.click("Save address", "button")
    yield from experts.click("Continue", "button")
    yield from experts.ship_and_pay(p["shipping"])
    yield from experts.click("Home", "link")
    yield from experts.click("Contact", "link")
    yield from experts.choose("Subject", p["subject"])
    yield from experts.write({"Text": p["text"]})
    yield from experts.click("Send message", "button")
    yield from experts.finish()


def _sample_replaced(data: ShopData, rng: random.Random) -> Parameters:
    return {
        "number": sampling.order(data, rng, PROCESSING).number,
        "reason": rng.choice(REASONS),
        "address": sampling.address(rng),
        "shipping": sampling.shipping(rng),
    }


def _judge_replaced(p: Parameters, data: ShopData) -> checks.Evaluation:
    old, path = sampling.find_order(data, p["number"]), f"/orders/{p['number']}"
    lines = [f"{line.quantity} x {line.describe()}" for line in old.lines]
    return checks.pages(
        c.equals(path, "#status", "Cancelled"),
        c.equals(path, "#reason", f"Reason: {p['reason']}"),
        *c.newest_order(*lines, items=old.items, address=p["address"], shipping=p["shipping"]),
    )


def _replaced_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    path = f"/orders/{p['number']}"
    shipped = checks.shows(p["shipping"], f"Deliver to {p['address']}")
    return checks.milestones(
        ("The order is cancelled", checks.both(c.at(path), checks.shows("Cancelled", p["reason"]))),
        ("Its items are in the cart", checks.both(c.at("/cart"), checks.shows(f"Order {p['number']} is in the"))),
        ("Address and shipping are chosen", checks.both(c.at("/checkout/payment"), shipped)),
        ("The order is placed", _PLACED),
    )


def _replace(task: Task) -> Expert:
    p = task.parameters
    yield from experts.open_order(p["number"], task.horizon - 13)
    yield from experts.click("Cancel order", "link")
    yield from experts.choose("Reason", p["reason"])
    yield from experts.click("Confirm", "button")
    yield from experts.click("Order again", "button")
    yield from experts.check_out(p["address"], p["shipping"])
    yield from experts.finish()


def _sample_settings(data: ShopData, rng: random.Random) -> Parameters:
    known = rng.choice(data.usual.addresses)
    return {
        "address": known.label,
        "new_street": f"{rng.randint(30, 60)} {rng.choice(STREETS)}",
        "new_city": rng.choice([city for city in CITIES if city != known.city]),
        **sampling.new_address(rng),
        **sample_newsletter(data, rng),
    }


def _written(p: Parameters) -> tuple[str, str, str]:
    """What the shop says of the changed address, the added one and the subscription."""
    return (
        f"{p['address']}: {p['new_street']}, {p['new_city']}",
        f"{p['label']}: {p['street']}, {p['city']}, {p['postcode']}",
        f"Subscribed: {p['email']}, {p['frequency']}",
    )


def _judge_settings(p: Parameters, data: ShopData) -> checks.Evaluation:
    changed, added, subscribed = _written(p)
    return checks.pages(
        c.includes("/addresses", f'[data-label="{p["address"]}"]', changed),
        c.includes("/addresses", f'[data-label="{p["label"]}"]', added),
        c.equals("/newsletter", "#subscription", subscribed),
    )


def _settings_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    changed, added, subscribed = _written(p)
    return checks.milestones(
        ("The form of the address is open", c.at(f"/addresses/edit?label={p['address']}")),
        ("The address is changed", checks.both(c.at("/addresses"), checks.shows(changed))),
        ("The new address is saved", checks.both(c.at("/addresses"), checks.shows(changed, added))),
        ("The subscription is made", checks.both(c.at("/newsletter"), checks.shows(subscribed))),
    )


def _change_settings(task: Task) -> Expert:
    p = task.parameters
    yield from experts.click("Addresses", "link")
    yield from experts.click(f"Edit {p['address']}", "link", "Edit (" + "|".join(LABELS) + ")")
    yield from experts.write({"Street": p["new_street"], "City": p["new_city"]})
    yield from experts.click("Save address", "button")
    yield from experts.click("New address", "link")
    yield from experts.write({"Label": p["label"], "Street": p["street"], "City": p["city"], "Postcode": p["postcode"]})
    yield from experts.click("Save address", "button")
    yield from experts.click("Account", "link")
    yield from experts.click("Newsletter", "link")
    yield from experts.write({"Email": p["email"]})
    yield from experts.choose("Frequency", p["frequency"])
    yield from experts.click("Subscribe", "button")
    yield from experts.finish()


def _sample_reviews(data: ShopData, rng: random.Random) -> Parameters:
    first, second = rng.sample([product for product in data.products.values() if product.stock], 2)
    first_stars, second_stars = rng.sample(STARS, 2)
    return {
        "first": first.name,
        "first_stars": first_stars,
        "second": second.name,
        "second_stars": second_stars,
        "title": rng.choice(OPINIONS),
        "text": rng.choice(TEXTS),
    }


def _judge_reviews(p: Parameters, data: ShopData) -> checks.Evaluation:
    author = data.usual.name
    return checks.pages(
        *(reviewed(p[which], p[f"{which}_stars"], p["title"], p["text"], author) for which in ("first", "second"))
    )


def _reviews_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    first, second = product_path(p["first"]), product_path(p["second"])
    sent = checks.shows("Thank you for your review")
    return checks.milestones(
        ("The form for the first review is open", c.at(f"{first}/review")),
        ("The first review is sent", checks.both(c.at(f"{first}/reviews"), sent)),
        ("The form for the second review is open", c.at(f"{second}/review")),
        ("The second review is sent", checks.both(c.at(f"{second}/reviews"), sent)),
    )


def _review_two(task: Task) -> Expert:
    p = task.parameters
    for which in ("first", "second"):
        yield from write_review(p[which], p[f"{which}_stars"], p["title"], p["text"])
    yield from experts.finish()


TEMPLATES = (
    TaskTemplate(
        name="shop.send_gift",
        site="shop",
        intent="Buy the {product} in {colour} with {shipping} shipping to the new address {label}: {street}, {city}, "
        "{postcode}. Then send the shop a message about {subject}: {text}",
        sample=_sample_gift,
        evaluation=_judge_gift,
        milestones=_gift_milestones,
        expert=_send_gift,
        horizon=21,
    ),
    TaskTemplate(
        name="shop.replace_order",
        site="shop",
        intent="Cancel order {number} with the reason {reason} and order its items again. Deliver them to {address} "
        "with {shipping} shipping.",
        sample=_sample_replaced,
        evaluation=_judge_replaced,
        milestones=_replaced_milestones,
        expert=_replace,
        horizon=lambda p, d: 13 + sampling.order_page(d, p["number"]),
    ),
    TaskTemplate(
        name="shop.change_settings",
        site="shop",
        intent="Change the address {address} to {new_street} in {new_city}, add the address {label}: {street}, {city}, "
        "{postcode}, and subscribe {email} to the newsletter, {frequency}.",
        sample=_sample_settings,
        evaluation=_judge_settings,
        milestones=_settings_milestones,
        expert=_change_settings,
        horizon=17,
    ),
    TaskTemplate(
        name="shop.review_two",
        site="shop",
        intent="Review the {first} with {first_stars} and the {second} with {second_stars}, both with the title "
        "{title} and the text {text}.",
        sample=_sample_reviews,
        evaluation=_judge_reviews,
        milestones=_reviews_milestones,
        expert=_review_two,
        horizon=15,
        split="validation",
    ),
)
"""Errands about a customer's own things."""
