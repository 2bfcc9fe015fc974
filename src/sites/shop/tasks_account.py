"""Task templates about the customer's past orders and addresses."""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.experts import read
from sites.shop import checks as c
from sites.shop import experts, sampling
from sites.shop.data import CITIES, LABELS, PROCESSING, REASONS, STREETS, ShopData
from sites.task_template import Expert, Parameters, TaskTemplate


def _sample_total(data: ShopData, rng: random.Random) -> Parameters:
    totals = [f"${order.total}" for order in data.usual.orders]
    while True:
        order = sampling.order(data, rng)
        # A total that begins another one ("$15", "$156") could be answered by the wrong order.
        if sum(total.startswith(f"${order.total}") for total in totals) == 1:
            return {"number": order.number}


def _judge_total(p: Parameters, data: ShopData) -> checks.Evaluation:
    return checks.answer_including(f"${sampling.find_order(data, p['number']).total}")


def _total_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    return checks.milestones(
        ("The orders are shown", c.at("/orders*")),
        ("The order is listed", checks.both(c.at("/orders*"), checks.shows(f"Order {p['number']}"))),
        ("An order is open", c.at("/orders/*")),
        ("The order is open", c.at(f"/orders/{p['number']}")),
    )


def _total_steps(p: Parameters, data: ShopData) -> int:
    return 3 + sampling.order_page(data, p["number"])


def _read_total(task: Task) -> Expert:
    seen = yield from experts.open_order(task.parameters["number"], task.horizon - 3)
    yield from experts.finish(read(seen, r"Total: (\$\d+)"), r"\$\d+")


def _sample_cancel(data: ShopData, rng: random.Random) -> Parameters:
    return {"number": sampling.order(data, rng, PROCESSING).number, "reason": rng.choice(REASONS)}


def _judge_cancel(p: Parameters, data: ShopData) -> checks.Evaluation:
    path = f"/orders/{p['number']}"
    return checks.pages(c.equals(path, "#status", "Cancelled"), c.equals(path, "#reason", f"Reason: {p['reason']}"))


def _cancel_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    path = f"/orders/{p['number']}"
    chosen = checks.both(c.at(f"{path}/cancel"), checks.has("Reason", p["reason"]))
    done = checks.both(c.at(path), checks.shows("Cancelled", p["reason"]))
    return checks.milestones(
        ("The order is open", c.at(f"{path}*")),
        ("The form is open", c.at(f"{path}/cancel")),
        ("The reason is chosen", checks.either(chosen, done)),
        ("The order is cancelled", done),
    )


def _cancel_steps(p: Parameters, data: ShopData) -> int:
    return 6 + sampling.order_page(data, p["number"])


def _cancel(task: Task) -> Expert:
    yield from experts.open_order(task.parameters["number"], task.horizon - 6)
    yield from experts.click("Cancel order", "link")
    yield from experts.choose("Reason", task.parameters["reason"])
    yield from experts.click("Confirm", "button")
    yield from experts.finish()


def _sample_address(data: ShopData, rng: random.Random) -> Parameters:
    return sampling.new_address(rng)


def _judge_address(p: Parameters, data: ShopData) -> checks.Evaluation:
    line = f"{p['label']}: {p['street']}, {p['city']}, {p['postcode']}"
    return checks.pages(c.includes("/addresses", f'[data-label="{p["label"]}"]', line))


def _address_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    form = c.at("/addresses/new")
    saved = checks.both(c.at("/addresses"), checks.shows(f"{p['label']}: {p['street']}, {p['city']}"))
    half = checks.both(form, checks.has("Label", p["label"]), checks.has("Street", p["street"]))
    full = checks.both(form, checks.has("City", p["city"]), checks.has("Postcode", p["postcode"]))
    return checks.milestones(
        ("The form is open", form),
        ("Label and street are written", checks.either(half, saved)),
        ("City and postcode are written", checks.either(full, saved)),
        ("The address is saved", saved),
    )


def _add_address(task: Task) -> Expert:
    p = task.parameters
    yield from experts.click("Addresses", "link")
    yield from experts.click("New address", "link")
    yield from experts.write({"Label": p["label"], "Street": p["street"], "City": p["city"], "Postcode": p["postcode"]})
    yield from experts.click("Save address", "button")
    yield from experts.finish()


def _sample_edit(data: ShopData, rng: random.Random) -> Parameters:
    known = rng.choice(data.usual.addresses)
    city = rng.choice([city for city in CITIES if city != known.city])
    return {"address": known.label, "street": f"{rng.randint(30, 60)} {rng.choice(STREETS)}", "city": city}


def _judge_edit(p: Parameters, data: ShopData) -> checks.Evaluation:
    line = f"{p['address']}: {p['street']}, {p['city']}"
    return checks.pages(c.includes("/addresses", f'[data-label="{p["address"]}"]', line))


def _edit_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    form = c.at(f"/addresses/edit?label={p['address']}")
    saved = checks.both(c.at("/addresses"), checks.shows(f"{p['address']}: {p['street']}, {p['city']}"))
    return checks.milestones(
        ("The form is open", form),
        ("The street is written", checks.either(checks.both(form, checks.has("Street", p["street"])), saved)),
        ("The city is written", checks.either(checks.both(form, checks.has("City", p["city"])), saved)),
        ("The address is saved", saved),
    )


def _edit_address(task: Task) -> Expert:
    p = task.parameters
    yield from experts.click("Addresses", "link")
    yield from experts.click(f"Edit {p['address']}", "link", "Edit (" + "|".join(LABELS) + ")")
    yield from experts.write({"Street": p["street"], "City": p["city"]})
    yield from experts.click("Save address", "button")
    yield from experts.finish()


ORDER_TOTAL = TaskTemplate(
    name="shop.order_total",
    site="shop",
    intent="What is the total of order {number}?",
    sample=_sample_total,
    evaluation=_judge_total,
    milestones=_total_milestones,
    expert=_read_total,
    horizon=_total_steps,
)
CANCEL_ORDER = TaskTemplate(
    name="shop.cancel_order",
    site="shop",
    intent="Cancel order {number}. The reason is: {reason}.",
    sample=_sample_cancel,
    evaluation=_judge_cancel,
    milestones=_cancel_milestones,
    expert=_cancel,
    horizon=_cancel_steps,
)
ADD_ADDRESS = TaskTemplate(
    name="shop.add_address",
    site="shop",
    intent="Add the address {label}: {street}, {city}, {postcode}.",
    sample=_sample_address,
    evaluation=_judge_address,
    milestones=_address_milestones,
    expert=_add_address,
    horizon=8,
)
EDIT_ADDRESS = TaskTemplate(
    name="shop.edit_address",
    site="shop",
    intent="Change the address {address} to {street} in {city}.",
    sample=_sample_edit,
    evaluation=_judge_edit,
    milestones=_edit_milestones,
    expert=_edit_address,
    horizon=6,
    split="test",
)
TEMPLATES = (ORDER_TOTAL, CANCEL_ORDER, ADD_ADDRESS, EDIT_ADDRESS)
"""Templates about orders and addresses."""
