"""Task templates that ask about a record; some ask for what the data do not hold.

Owns the short questions. Whoever asks does not know whether there is an answer: the same words ask about
orders with an invoice and without one, about customers with a phone and without one.
"""

from __future__ import annotations

import random
import re

from replay.records import Task
from sites.admin import checks, experts, sampling
from sites.admin.data import AdminData, Term
from sites.admin.dates import month_bounds
from sites.admin.grid import ALL
from sites.admin.order_pages import STATUSES
from sites.admin.report_pages import ROWS
from sites.shop.data import MONTHS
from sites.task_template import Expert, Parameters, TaskTemplate

_FACTS = ("phone number", "city", "group")


def _sample_buyer(data: AdminData, rng: random.Random) -> Parameters:
    """Only orders whose neighbours, one mistyped digit away, are other customers'."""
    while True:
        order = sampling.order(data, rng)
        near = [o for o in data.orders.values() if o.number // 10 == order.number // 10 and o != order]
        if all(other.customer != order.customer for other in near):
            return {"number": order.number}


def _judge_buyer(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.answer(data.orders[p["number"]].customer)


def _buyer_milestones(p: Parameters, data: AdminData) -> checks.Subgoals:
    found = checks.both(checks.url("/search?*"), checks.text(data.orders[p["number"]].summary.split(", ")[1]))
    return checks.milestones(
        ("The search box was used", checks.either(checks.acted("search", "Search"), checks.acted("type", "Search"))),
        ("Search results are shown", checks.url("/search?*")),
        ("The number was searched for", checks.url(f"/search?q={p['number']}")),
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


def _tracking_milestones(p: Parameters, data: AdminData) -> checks.Subgoals:
    path = f"/orders/{p['number']}"
    shipment = "tracking" if data.orders[p["number"]].shipment else "No shipment"
    return checks.milestones(
        ("The number was searched for", checks.either(checks.url(f"/search?q={p['number']}"), checks.url(path))),
        ("An order is open", checks.url("/orders/*")),
        ("The order is open", checks.url(path)),
        ("The order's shipment is shown", checks.both(checks.url(path), checks.text(shipment))),
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


def _invoice_milestones(p: Parameters, data: AdminData) -> checks.Subgoals:
    found = "1 invoices" if data.orders[p["number"]].invoice else "0 invoices"
    listed = checks.both(checks.url(f"/sales/invoices?order={p['number']}*"), checks.text(found))
    return checks.milestones(
        ("The menu is used", checks.either(checks.acted("click", "Sales"), checks.url("/sales/*"))),
        ("The invoices are shown", checks.url("/sales/invoices*")),
        ("The order's number is written", checks.either(checks.field("Order", str(p["number"])), listed)),
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


def _count_milestones(p: Parameters, data: AdminData) -> checks.Subgoals:
    start, end = month_bounds(p["month"])
    status = p["status"].replace(" ", "+")
    done = checks.url(f"/orders?*status={status}*start={start}*end={end}*")
    return checks.milestones(
        ("The orders are shown", checks.url("/orders*")),
        ("The status is chosen", checks.either(checks.field("Status", p["status"]), done)),
        (
            "The month is written",
            checks.either(checks.both(checks.field("From", start), checks.field("To", end)), done),
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


def _sample_fact(data: AdminData, rng: random.Random) -> Parameters:
    return {"fact": rng.choice(_FACTS), "name": rng.choice(list(data.customers.values())).name}


def _judge_fact(p: Parameters, data: AdminData) -> checks.Evaluation:
    customer = next(c for c in data.customers.values() if c.name == p["name"])
    found = {"phone number": customer.phone, "city": customer.city, "group": customer.group}[p["fact"]]
    return checks.answer(found) if found else checks.no_answer("No phone number of this customer is known.")


def _fact_milestones(p: Parameters, data: AdminData) -> checks.Subgoals:
    customer = next(c for c in data.customers.values() if c.name == p["name"])
    path, listed = f"/customers/{customer.email}", f"/customers?name={p['name'].replace(' ', '+')}*"
    opened = checks.url(f"{path}*")
    return checks.milestones(
        ("The customers are shown", checks.either(checks.url("/customers*"), opened)),
        ("The name is written", checks.either(checks.field("Name", p["name"]), checks.url(listed), opened)),
        ("The customer is listed", checks.either(checks.both(checks.url(listed), checks.text(p["name"])), opened)),
        ("The customer is open", checks.both(opened, checks.text("Phone"))),
    )


def _find_fact(task: Task) -> Expert:
    name = task.parameters["name"]
    yield from experts.click("Customers", "link")
    seen = yield from experts.filter_rows("Name", name)
    seen = yield from experts.row_action(seen, rf"^{name} \|", "View")
    record = re.search(rf"{name}, \S+, (?P<group>\w+), (?P<city>\w+) ", seen.page_text)
    if record is None:
        raise LookupError(f"expected the record of {name!r}, found {seen.page_text!r}")
    phone = experts.read(seen, r"Phone: (\d{3}-\d{4})", lacking=experts.NONE)
    yield from experts.finish({"phone number": phone, **record.groupdict()}[task.parameters["fact"]])


def _term(p: Parameters, data: AdminData) -> Term:
    return next(term for term in data.terms if term.words == p["term"])


def _term_page(p: Parameters, data: AdminData) -> int:
    return data.terms.index(_term(p, data)) // ROWS


def _sample_term(data: AdminData, rng: random.Random) -> Parameters:
    return {"term": rng.choice(data.terms).words}


def _judge_term(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.answer(str(_term(p, data).uses))


def _term_milestones(p: Parameters, data: AdminData) -> checks.Subgoals:
    page, terms = _term_page(p, data), checks.url("/reports/terms*")
    there = checks.both(terms, checks.text(p["term"]))
    return checks.milestones(
        ("The menu is used", checks.either(checks.acted("click", "Reports"), checks.url("/reports/*"))),
        ("The search terms are shown", terms),
        ("The list is turned over", checks.either(checks.url(f"/reports/terms?page={page + 1}"), there)),
        ("The term is shown", there),
    )


def _to_term(p: Parameters, pages: int) -> experts.Skill:
    seen = yield from experts.open_from_menu("Reports", "Search terms")
    for _ in range(pages):
        if p["term"] in seen.page_text:
            break
        seen = yield from experts.click("Next page", "link")
    return seen


def _find_term(task: Task) -> Expert:
    seen = yield from _to_term(task.parameters, task.horizon)
    yield from experts.finish(experts.read(seen, rf"{task.parameters['term']} \d+ (\d+)"), r"\b\d{2,3}\b")


def _sample_month(data: AdminData, rng: random.Random) -> Parameters:
    return {**_sample_term(data, rng), "month": rng.choice(MONTHS)}


def _judge_month(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.no_answer("The report of search terms does not say when they were used.")


def _find_no_month(task: Task) -> Expert:
    yield from _to_term(task.parameters, task.horizon)
    yield from experts.finish(experts.NONE, r"\b\d{2,3}\b")


WHO_ORDERED = TaskTemplate(
    name="admin.who_ordered",
    site="admin",
    intent="Who placed order {number}?",
    sample=_sample_buyer,
    evaluation=_judge_buyer,
    subgoals=_buyer_milestones,
    expert=_find_buyer,
    horizon=2,
)
TRACKING_NUMBER = TaskTemplate(
    name="admin.tracking_number",
    site="admin",
    intent="What is the tracking number of order {number}?",
    sample=_sample_number,
    evaluation=_judge_tracking,
    subgoals=_tracking_milestones,
    expert=_find_tracking,
    horizon=3,
)
INVOICE_TOTAL = TaskTemplate(
    name="admin.invoice_total",
    site="admin",
    intent="What is the total of the invoice for order {number}?",
    sample=_sample_number,
    evaluation=_judge_invoice,
    subgoals=_invoice_milestones,
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
    subgoals=_count_milestones,
    expert=_count,
    horizon=8,
)
CUSTOMER_FACT = TaskTemplate(
    name="admin.customer_fact",
    site="admin",
    intent="What is the {fact} of the customer {name}?",
    sample=_sample_fact,
    evaluation=_judge_fact,
    subgoals=_fact_milestones,
    expert=_find_fact,
    horizon=5,
)
TERM_USES = TaskTemplate(
    name="admin.term_uses",
    site="admin",
    intent="How often was {term} searched for?",
    sample=_sample_term,
    evaluation=_judge_term,
    subgoals=_term_milestones,
    expert=_find_term,
    horizon=lambda p, data: 3 + _term_page(p, data),
)
TERM_IN_MONTH = TaskTemplate(
    name="admin.term_in_month",
    site="admin",
    intent="How often was {term} searched for in {month}?",
    sample=_sample_month,
    evaluation=_judge_month,
    subgoals=_term_milestones,
    expert=_find_no_month,
    horizon=lambda p, data: 3 + _term_page(p, data),
)
TEMPLATES = (
    WHO_ORDERED, TRACKING_NUMBER, INVOICE_TOTAL, COUNT_ORDERS, CUSTOMER_FACT, TERM_USES, TERM_IN_MONTH,
)  # fmt: skip
"""Questions, from short to long."""
