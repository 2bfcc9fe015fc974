"""Task templates in which one has to log in: at the start, or again when the log-in has run out.

Owns how long a log-in lasts: the start address says after how many pages it runs out.
"""

from __future__ import annotations

import random
from dataclasses import replace

from records.episodes import Task
from sites import checks
from sites.admin import checks as c
from sites.admin import experts, sampling
from sites.admin.data import AdminData, slug_of
from sites.admin.dates import TODAY
from sites.admin.tasks_orders import becomes, path
from sites.admin.tasks_records import product_path
from sites.admin.words import COMMENTS, ON_HOLD, STAFF
from sites.old_form import Expert, Parameters, TaskTemplate
from sites.shop.data import CANCELLED


def _user(data: AdminData, rng: random.Random) -> Parameters:
    user = rng.choice(STAFF)
    return {"user": user, "password": data.passwords[user]}


def _sample_hold(data: AdminData, rng: random.Random) -> Parameters:
    return {**_user(data, rng), "number": sampling.open_order(data, rng).number}


def _judge_hold(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.pages(c.record(path(p), becomes(p, data, ON_HOLD)))


def _hold_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    inside = checks.shows("You are logged in")
    return checks.milestones(
        ("The user name is written", checks.either(checks.has("User name", p["user"]), inside)),
        ("The user is logged in", inside),
        ("The order is open", c.at(path(p))),
        ("The order is on hold", c.recorded(path(p), becomes(p, data, ON_HOLD))),
    )


def _log_in(task: Task) -> experts.Skill:
    yield from experts.put("User name", task.parameters["user"])
    yield from experts.put("Password", task.parameters["password"])
    return (yield from experts.click("Log in", "button"))


def _hold(task: Task) -> experts.Skill:
    yield from experts.open_order(task.parameters["number"])
    return (yield from experts.click("Hold", "button"))


def _sample_product(data: AdminData, rng: random.Random) -> Parameters:
    item = sampling.product(data, rng)
    price, stock = sampling.price_and_stock(item, rng)
    return {**_user(data, rng), "product": item.name, "price": price, "stock": stock}


def _changed(p: Parameters, data: AdminData) -> tuple[str, str]:
    item = data.products[slug_of(p["product"])]
    return product_path(item.name), replace(item, price=p["price"], stock=p["stock"]).summary


def _judge_product(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.pages(c.record(*_changed(p, data)))


def _product_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    address, summary = _changed(p, data)
    return checks.milestones(
        ("The products are shown", checks.either(c.at("/products*"), c.at(address))),
        ("The product is open", c.at(address)),
        ("The price is written", checks.either(checks.has("Price", str(p["price"])), checks.shows(summary))),
        ("The product is saved", c.recorded(address, summary)),
    )


def _change_product(task: Task) -> Expert:
    p = task.parameters

    def attempt() -> Expert:
        yield from experts.edit_product(p["product"], {"Price": str(p["price"]), "Stock": str(p["stock"])})
        yield from experts.finish()

    return experts.staying_logged_in(attempt, p["user"], p["password"])


def _sample_cancel(data: AdminData, rng: random.Random) -> Parameters:
    return {**_sample_hold(data, rng), "comment": rng.choice(COMMENTS)}


def _judge_cancel(p: Parameters, data: AdminData) -> checks.Evaluation:
    record = c.record(path(p), becomes(p, data, CANCELLED))
    return checks.pages(record, c.equals(path(p), ".comment", f"{TODAY}: {p['comment']}"))


def _cancel_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    done = c.recorded(path(p), becomes(p, data, CANCELLED))
    return checks.milestones(
        ("The order is open", c.at(f"{path(p)}*")),
        ("The comment is written", checks.either(checks.has("Comment", p["comment"]), done)),
        ("The user is logged in again", checks.either(checks.shows("You are logged in"), done)),
        ("The order is cancelled", done),
    )


def _cancel(task: Task) -> Expert:
    p = task.parameters

    def attempt() -> Expert:
        yield from experts.open_order(p["number"])
        yield from experts.click("Cancel", "link")
        yield from experts.put("Comment", p["comment"])
        yield from experts.click("Confirm", "button")
        yield from experts.finish()

    return experts.staying_logged_in(attempt, p["user"], p["password"])


LOG_IN_AND_HOLD = TaskTemplate(
    name="admin.log_in_and_hold",
    site="admin",
    intent="Log in as {user} with the password {password} and put order {number} on hold.",
    sample=_sample_hold,
    evaluation=_judge_hold,
    milestones=_hold_milestones,
    expert=experts.script(_log_in, _hold),
    horizon=7,
    require_login=False,
)
EXPIRED_PRODUCT = TaskTemplate(
    name="admin.expired_product",
    site="admin",
    intent="Change the {product} to ${price} and {stock} in stock. Log in as {user} with {password} if you are asked.",
    sample=_sample_product,
    evaluation=_judge_product,
    milestones=_product_milestones,
    expert=_change_product,
    horizon=12,
    start="/?session_pages=2",
)
EXPIRED_CANCEL = TaskTemplate(
    name="admin.expired_cancel",
    site="admin",
    intent="Cancel order {number} with the comment {comment}. Log in as {user} with {password} if you are asked.",
    sample=_sample_cancel,
    evaluation=_judge_cancel,
    milestones=_cancel_milestones,
    expert=_cancel,
    horizon=14,
    start="/?session_pages=3",
)
TEMPLATES = (LOG_IN_AND_HOLD, EXPIRED_PRODUCT, EXPIRED_CANCEL)
"""Templates about logging in."""
