"""Task templates over the shop and its back office, whose products and orders are the same.

Owns what is read on one side of the counter and written on the other, or told on the forum.
"""

from __future__ import annotations

import random
from dataclasses import replace

from records.episodes import Task
from sites import checks
from sites.across.skills import Data, found_in_shop, go_to
from sites.admin import checks as office
from sites.admin import skills as managing
from sites.admin.data import slug_of
from sites.experts import read
from sites.forum import checks as forum
from sites.forum import sampling as topics
from sites.forum import skills as posting
from sites.old_form import Expert, Parameters, TaskTemplate, noting
from sites.shop import sampling as goods
from sites.skills import finish, search


def _sample_price(data: Data, rng: random.Random) -> Parameters:
    first, second = goods.product(data["shop"], rng), goods.product(data["shop"], rng)
    while data["shop"].product(first).price == data["shop"].product(second).price:
        second = goods.product(data["shop"], rng)
    return {"first": first, "second": second}


def _priced(p: Parameters, data: Data) -> str:
    price = data["shop"].products[slug_of(p["second"])].price
    summary: str = replace(data["admin"].products[slug_of(p["first"])], price=price).summary
    return summary


def _set_price(task: Task) -> Expert:
    p = task.parameters
    seen = yield from search(p["second"])
    price = read(seen, rf"{p['second']} \$(\d+),")
    yield from noting(price, go_to("admin"))
    yield from managing.edit_product(p["first"], {"Price": price})


def _price_milestones(p: Parameters, data: Data) -> checks.Milestones:
    form = f"/products/{slug_of(p['first'])}"
    price, done = str(data["shop"].products[slug_of(p["second"])].price), office.recorded(form, _priced(p, data))
    return checks.milestones(
        ("The price is found", found_in_shop(p["second"])),
        ("The other product is open in the back office", office.at(form)),
        ("The price is written", checks.either(checks.both(office.at(form), checks.has("Price", price)), done)),
        ("The product is saved", done),
    )


def _sample_tracking(data: Data, rng: random.Random) -> Parameters:
    shipped = [order.number for order in data["admin"].orders.values() if order.shipment]
    return {"number": rng.choice(shipped), "user": topics.user(data["forum"], rng)}


def _tracking(p: Parameters, data: Data) -> str:
    found: str = data["admin"].orders[p["number"]].shipment.tracking
    return found


def _send_tracking(task: Task) -> Expert:
    p = task.parameters
    seen = yield from managing.open_order(p["number"])
    tracking = read(seen, r"tracking ([A-Z]{2}\d{5})")
    yield from noting(tracking, go_to("forum"))
    yield from posting.open_user(p["user"])
    yield from posting.send_message(tracking)
    yield from finish()


TEMPLATES = (
    TaskTemplate(
        name="across.send_tracking",
        site="admin",
        also=("forum",),
        intent="Send the forum user {user} a message with the tracking number of order {number} from the back office.",
        sample=_sample_tracking,
        evaluation=lambda p, d: checks.pages(forum.messaged(p["user"], _tracking(p, d))),
        milestones=lambda p, d: checks.milestones(
            ("open the order", office.at(f"/orders/{p['number']}")),
            ("open the user", forum.at(f"/user/{p['user']}*")),
            *posting.messaging(p["user"], _tracking(p, d)),
        ),
        expert=_send_tracking,
        horizon=9,
    ),
    TaskTemplate(
        name="across.set_same_price",
        site="shop",
        also=("admin",),
        intent="In the back office, give the {first} the price that the {second} has in the shop.",
        sample=_sample_price,
        evaluation=lambda p, d: checks.pages(office.record(f"/products/{slug_of(p['first'])}", _priced(p, d))),
        milestones=_price_milestones,
        expert=_set_price,
        horizon=10,
        split="validation",
    ),
)
"""Templates over the shop and its back office."""
