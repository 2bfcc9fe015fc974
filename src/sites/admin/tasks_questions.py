"""Task templates that ask about orders; some ask for what the data do not hold.

Owns the short questions. Whoever asks does not know whether there is an answer: the same words ask about
orders with an invoice and without one, with a parcel and without one.
"""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.admin import checks as c
from sites.admin import experts, sampling
from sites.admin.data import AdminData
from sites.admin.dates import month_bounds
from sites.admin.grid import ALL
from sites.admin.order_pages import STATUSES
from sites.old_form import Expert, Parameters, TaskTemplate
from sites.shop.data import MONTHS


def _sample_buyer(data: AdminData, rng: random.Random) -> Parameters:
    """Only orders whose neighbours, one mistyped digit away, are other customers'."""
    while True:
        order = sampling.order(data, rng)
        near = [o for o in data.orders.values() if o.number // 10 == order.number // 10 and o != order]
        if all(other.customer != order.customer for other in near):
            return {"number": order.number}


def _judge_buyer(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.answer(data.orders[p["number"]].customer)


def _buyer_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    found = checks.both(c.at("/search?*"), checks.shows(data.orders[p["number"]].summary.split(", ")[1]))
    return checks.milestones(
        ("The search box was used", checks.either(checks.acted("search", "Search"), checks.acted("type", "Search"))),
        ("Search results are shown", c.at("/search?*")),
        ("The number was searched for", c.at(f"/search?q={p['number']}")),
        ("The order is listed", found),
    )


def _find_buyer(task: Task) -> Expert:
    number = task.parameters["number"]
    seen = yield from experts.look_for(str(number))
    name = experts.read(seen, rf"{number} \S+ ({experts.PERSON})")
    yield from experts.finish(name, experts.PERSON)


def _sample_number(data: AdminData, rng: random.Random) -> Parameters:
    return {"number": sampling.order(data, rng).number}


def _judge_tracking(p: Parameters, data: AdminData) -> checks.Evaluation:
    shipment = data.orders[p["number"]].shipment
    return checks.answer(shipment.tracking) if shipment else checks.no_answer("The order has no shipment.")


def _tracking_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    path = f"/orders/{p['number']}"
    shipment = "tracking" if data.orders[p["number"]].shipment else "No shipment"
    return checks.milestones(
        ("The number was searched for", checks.either(c.at(f"/search?q={p['number']}"), c.at(path))),
        ("An order is open", c.at("/orders/*")),
        ("The order is open", c.at(path)),
        ("The order's shipment is shown", checks.both(c.at(path), checks.shows(shipment))),
    )


def _find_tracking(task: Task) -> Expert:
    # A mistyped number may lead to another order without a shipment, which would be right by chance.
    yield from experts.look_for(str(task.parameters["number"]), rivals=None)
    seen = yield from experts.click("View", "link")
    found = experts.read(seen, r"tracking ([A-Z]{2}\d{5})", lacking=experts.NONE)
    yield from experts.finish(found, r"[A-Z]{2}\d{5}")


def _judge_invoice(p: Parameters, data: AdminData) -> checks.Evaluation:
    order = data.orders[p["number"]]
    return checks.answer(f"${order.total}") if order.invoice else checks.no_answer("The order has no invoice.")


def _invoice_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    found = "1 invoices" if data.orders[p["number"]].invoice else "0 invoices"
    listed = checks.both(c.at(f"/sales/invoices?order={p['number']}*"), checks.shows(found))
    return checks.milestones(
        ("The menu is used", checks.either(checks.acted("click", "Sales"), c.at("/sales/*"))),
        ("The invoices are shown", c.at("/sales/invoices*")),
        ("The order's number is written", checks.either(checks.has("Order", str(p["number"])), listed)),
        ("The invoices of the order are shown", listed),
    )


def _find_invoice(task: Task) -> Expert:
    yield from experts.open_from_menu("Sales", "Invoices")
    seen = yield from experts.filter_rows("Order", str(task.parameters["number"]))
    total = experts.read(seen, rf"Order {task.parameters['number']} (\$\d+)", lacking=experts.NONE)
    yield from experts.finish(total, experts.MONEY)


def _counts(data: AdminData, month: str) -> dict[str, int]:
    """Return the number of a month's orders by status, and of all."""
    start, end = month_bounds(month)
    found = [order.status for order in data.orders.values() if start <= order.date <= end]
    return {ALL: len(found), **{status: found.count(status) for status in STATUSES}}


def _sample_count(data: AdminData, rng: random.Random) -> Parameters:
    """Only statuses whose number no other status of the month has."""
    while True:
        month, status = rng.choice(MONTHS), rng.choice(STATUSES)
        counts = _counts(data, month)
        if counts[status] and list(counts.values()).count(counts[status]) == 1:
            return {"status": status, "month": month}


def _judge_count(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.answer(str(_counts(data, p["month"])[p["status"]]))


def _count_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    start, end = month_bounds(p["month"])
    status = p["status"].replace(" ", "+")
    done = c.at(f"/orders?*status={status}*start={start}*end={end}*")
    return checks.milestones(
        ("The orders are shown", c.at("/orders*")),
        ("The status is chosen", checks.either(checks.has("Status", p["status"]), done)),
        (
            "The month is written",
            checks.either(checks.both(checks.has("From", start), checks.has("To", end)), done),
        ),
        ("The orders are filtered", done),
    )


def _count(task: Task) -> Expert:
    start, end = month_bounds(task.parameters["month"])
    yield from experts.open_from_menu("Sales", "Orders")
    yield from experts.click("Filters", "button")
    yield from experts.choose("Status", task.parameters["status"])
    yield from experts.put("From", start)
    yield from experts.put("To", end)
    seen = yield from experts.click("Filter", "button")
    yield from experts.finish(experts.read(seen, r"(\d+) orders"), r"\b\d{1,2}\b")


WHO_ORDERED = TaskTemplate(
    name="admin.who_ordered",
    site="admin",
    intent="Who placed order {number}?",
    sample=_sample_buyer,
    evaluation=_judge_buyer,
    milestones=_buyer_milestones,
    expert=_find_buyer,
    horizon=2,
)
TRACKING_NUMBER = TaskTemplate(
    name="admin.tracking_number",
    site="admin",
    intent="What is the tracking number of order {number}?",
    sample=_sample_number,
    evaluation=_judge_tracking,
    milestones=_tracking_milestones,
    expert=_find_tracking,
    horizon=3,
)
INVOICE_TOTAL = TaskTemplate(
    name="admin.invoice_total",
    site="admin",
    intent="What is the total of the invoice for order {number}?",
    sample=_sample_number,
    evaluation=_judge_invoice,
    milestones=_invoice_milestones,
    expert=_find_invoice,
    horizon=5,
    split="validation",
)
COUNT_ORDERS = TaskTemplate(
    name="admin.count_orders",
    site="admin",
    intent="How many orders with the status {status} were placed in {month}?",
    sample=_sample_count,
    evaluation=_judge_count,
    milestones=_count_milestones,
    expert=_count,
    horizon=8,
)
TEMPLATES = (WHO_ORDERED, TRACKING_NUMBER, INVOICE_TOTAL, COUNT_ORDERS)
"""Questions, from short to long."""
