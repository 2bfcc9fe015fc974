"""Task templates that change orders: hold, cancel, comment, ship, invoice, and several at once."""

from __future__ import annotations

import random
from dataclasses import replace

from records.episodes import Task
from sites import checks
from sites.admin import checks as c
from sites.admin import experts, sampling
from sites.admin.data import AdminData
from sites.admin.dates import TODAY
from sites.admin.words import COMMENTS, ON_HOLD, PENDING
from sites.old_form import Parameters, TaskTemplate
from sites.shop.data import CANCELLED, SHIPPED

BULK = {"Hold": ON_HOLD, "Cancel": CANCELLED}
"""What tasks do to several orders at once, and the status it leads to."""
_PAGES = 3


def path(p: Parameters) -> str:
    """Return the address of the order that a task is about."""
    return f"/orders/{p['number']}"


def becomes(p: Parameters, data: AdminData, status: str) -> str:
    """Return what the order's page says when it has this status."""
    return replace(data.orders[p["number"]], status=status).summary


def _sample_open(data: AdminData, rng: random.Random) -> Parameters:
    return {"number": sampling.open_order(data, rng).number}


def _judge_hold(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.pages(c.record(path(p), becomes(p, data, ON_HOLD)))


def _hold_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    held = c.recorded(path(p), becomes(p, data, ON_HOLD))
    return checks.milestones(
        ("Something is searched for or listed", checks.either(c.at("/search?*"), c.at("/orders*"))),
        ("The order is listed", checks.either(checks.shows(str(p["number"])), c.at(path(p)))),
        ("The order is open", c.at(path(p))),
        ("The order is on hold", held),
    )


def _open(task: Task) -> experts.Skill:
    return (yield from experts.open_order(task.parameters["number"]))


def _press_hold(task: Task) -> experts.Skill:
    return (yield from experts.click("Hold", "button"))


def _sample_cancel(data: AdminData, rng: random.Random) -> Parameters:
    return {**_sample_open(data, rng), "comment": rng.choice(COMMENTS)}


def _judge_cancel(p: Parameters, data: AdminData) -> checks.Evaluation:
    record = c.record(path(p), becomes(p, data, CANCELLED))
    return checks.pages(record, c.equals(path(p), ".comment", f"{TODAY}: {p['comment']}"))


def _cancel_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    form = c.at(f"{path(p)}/cancel")
    done = c.recorded(path(p), becomes(p, data, CANCELLED))
    written = checks.both(form, checks.has("Comment", p["comment"]))
    return checks.milestones(
        ("The order is open", c.at(f"{path(p)}*")),
        ("The form is open", checks.either(form, done)),
        ("The comment is written", checks.either(written, done)),
        ("The order is cancelled", done),
    )


def _cancel(task: Task) -> experts.Skill:
    yield from experts.click("Cancel", "link")
    yield from experts.put("Comment", task.parameters["comment"])
    return (yield from experts.click("Confirm", "button"))


def _sample_comment(data: AdminData, rng: random.Random) -> Parameters:
    return {"number": sampling.order(data, rng).number, "comment": rng.choice(COMMENTS)}


def _judge_comment(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.pages(c.equals(path(p), ".comment", f"{TODAY}: {p['comment']} (customer notified)"))


def _comment_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    opened = c.at(path(p))
    done = c.recorded(path(p), f"{p['comment']} (customer notified)")
    return checks.milestones(
        ("The order is open", opened),
        ("The notice is ticked", checks.either(checks.both(opened, c.ticked(["Notify customer"])), done)),
        ("The comment is written", checks.either(checks.both(opened, checks.has("Comment", p["comment"])), done)),
        ("The comment is added", done),
    )


def _comment(task: Task) -> experts.Skill:
    yield from experts.click("Notify customer", "checkbox", experts.ANY)
    yield from experts.put("Comment", task.parameters["comment"])
    return (yield from experts.click("Add comment", "button"))


def _sample_ship(data: AdminData, rng: random.Random) -> Parameters:
    return {**_sample_open(data, rng), **sampling.to_ship(data, rng)}


def shipped(p: Parameters) -> str:
    """Return how the order's page ends the line about its shipment."""
    return f": {p['carrier']}, tracking {p['tracking']}"


def _judge_ship(p: Parameters, data: AdminData) -> checks.Evaluation:
    record = c.record(path(p), becomes(p, data, SHIPPED))
    return checks.pages(record, c.includes(path(p), "#shipment", shipped(p)))


def _ship_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    form, done = c.at(f"{path(p)}/ship"), c.recorded(path(p), shipped(p))
    return checks.milestones(
        ("The order is open", c.at(f"{path(p)}*")),
        ("The form is open", checks.either(form, done)),
        ("The carrier is chosen", checks.either(checks.both(form, checks.has("Carrier", p["carrier"])), done)),
        ("The order is shipped", done),
    )


def _ship(task: Task) -> experts.Skill:
    return (yield from experts.ship(task.parameters["carrier"], task.parameters["tracking"]))


def _sample_fulfil(data: AdminData, rng: random.Random) -> Parameters:
    order = sampling.order(data, rng, lambda o: o.status in sampling.OPEN and o.invoice is None)
    return {"number": order.number, **sampling.to_ship(data, rng), "comment": rng.choice(COMMENTS)}


def _judge_fulfil(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.pages(
        *_judge_ship(p, data)["program_html"],
        c.includes(path(p), "#invoice", TODAY),
        c.equals(path(p), ".comment", f"{TODAY}: {p['comment']}"),
    )


def _fulfil_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    opened = c.at(path(p))
    return checks.milestones(
        ("The order is open", opened),
        ("The invoice is created", checks.both(opened, checks.shows(TODAY))),
        ("The order is shipped", checks.both(opened, checks.shows(TODAY, shipped(p)))),
        ("The comment is added", checks.both(opened, checks.shows(shipped(p), f"{TODAY}: {p['comment']}"))),
    )


def _invoice(task: Task) -> experts.Skill:
    yield from experts.click("Invoice", "link")
    return (yield from experts.click("Submit invoice", "button"))


def _plain_comment(task: Task) -> experts.Skill:
    yield from experts.put("Comment", task.parameters["comment"])
    return (yield from experts.click("Add comment", "button"))


def _sample_bulk(data: AdminData, rng: random.Random) -> Parameters:
    first, second, third = sampling.same_page(data, rng, PENDING, 3, _PAGES)
    return {"action": rng.choice(list(BULK)), "first": first, "second": second, "third": third}


def _bulk_numbers(p: Parameters) -> list[int]:
    return [p["first"], p["second"], p["third"]]


def _judge_bulk(p: Parameters, data: AdminData) -> checks.Evaluation:
    status, numbers = BULK[p["action"]], _bulk_numbers(p)
    records = [c.record(path({"number": n}), becomes({"number": n}, data, status)) for n in numbers]
    count = len(sampling.newest_first(data, status)) + len(numbers)
    return checks.pages(*records, c.equals(f"/orders?status={status}", "#count", f"{count} orders: {status}"))


def _bulk_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    names = [f"Select {number}" for number in _bulk_numbers(p)]
    chosen = checks.both(c.ticked(names), checks.has("Action", p["action"]))
    done = checks.both(c.at("/orders"), checks.shows("Changed 3 orders"))
    return checks.milestones(
        ("The orders are shown", c.at("/orders*")),
        ("The orders are ticked", checks.either(c.ticked(names), done)),
        ("The action is chosen", checks.either(chosen, done)),
        ("The orders are changed", done),
    )


def _bulk_steps(p: Parameters, data: AdminData) -> int:
    return 11 + sampling.page_of(data, PENDING, p["first"])


def _bulk(task: Task) -> experts.Skill:
    p = task.parameters
    names = [f"Select {number}" for number in _bulk_numbers(p)]
    yield from experts.open_from_menu("Sales", "Orders")
    yield from experts.click("Filters", "button")
    yield from experts.choose("Status", PENDING)
    seen = yield from experts.click("Filter", "button")
    for _ in range(_PAGES):
        if names[0] in experts.lines_of(seen, "checkbox", ".*"):
            break
        seen = yield from experts.click("Next page", "link")
    yield from experts.tick_all(names)
    yield from experts.choose("Action", p["action"])
    return (yield from experts.click("Apply", "button"))


HOLD_ORDER = TaskTemplate(
    name="admin.hold_order",
    site="admin",
    intent="Put order {number} on hold.",
    sample=_sample_open,
    evaluation=_judge_hold,
    milestones=_hold_milestones,
    expert=experts.script(_open, _press_hold),
    horizon=4,
)
CANCEL_ORDER = TaskTemplate(
    name="admin.cancel_order",
    site="admin",
    intent="Cancel order {number} with the comment: {comment}",
    sample=_sample_cancel,
    evaluation=_judge_cancel,
    milestones=_cancel_milestones,
    expert=experts.script(_open, _cancel),
    horizon=6,
)
COMMENT_ORDER = TaskTemplate(
    name="admin.comment_order",
    site="admin",
    intent="Add a comment to order {number} and notify the customer: {comment}",
    sample=_sample_comment,
    evaluation=_judge_comment,
    milestones=_comment_milestones,
    expert=experts.script(_open, _comment),
    horizon=6,
)
SHIP_ORDER = TaskTemplate(
    name="admin.ship_order",
    site="admin",
    intent="Ship order {number} by {carrier} with the tracking number {tracking}.",
    sample=_sample_ship,
    evaluation=_judge_ship,
    milestones=_ship_milestones,
    expert=experts.script(_open, _ship),
    horizon=7,
)
FULFIL_ORDER = TaskTemplate(
    name="admin.fulfil_order",
    site="admin",
    intent="Invoice order {number}, ship it by {carrier} with the tracking number {tracking}, and add the "
    "comment: {comment}",
    sample=_sample_fulfil,
    evaluation=_judge_fulfil,
    milestones=_fulfil_milestones,
    expert=experts.script(_open, _invoice, _ship, _plain_comment),
    horizon=11,
)
BULK_ORDERS = TaskTemplate(
    name="admin.bulk_orders",
    site="admin",
    intent="{action} the pending orders {first}, {second} and {third}.",
    sample=_sample_bulk,
    evaluation=_judge_bulk,
    milestones=_bulk_milestones,
    expert=experts.script(_bulk),
    horizon=_bulk_steps,
)
TEMPLATES = (HOLD_ORDER, CANCEL_ORDER, COMMENT_ORDER, SHIP_ORDER, FULFIL_ORDER, BULK_ORDERS)
"""Templates about orders, from short to long."""
