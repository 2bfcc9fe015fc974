"""Questions about orders; some ask for what the data do not hold.

Whoever asks does not know whether there is an answer: the same words ask about orders with an invoice and without
one, with a parcel and without one.
"""

from __future__ import annotations

from sites.admin import sampling, skills
from sites.admin.checks import at
from sites.admin.data import AdminData
from sites.admin.dates import month_bounds
from sites.admin.grid import ALL
from sites.admin.order_pages import STATUSES
from sites.admin.tasks.about import AboutOrder
from sites.checks import (
    UNANSWERABLE,
    Evaluation,
    Milestones,
    acted,
    answer,
    answer_or_none,
    both,
    either,
    has,
    shows,
    towards,
)
from sites.experts import Expert, read
from sites.skills import NUMBER, choose, click, finish, search, write
from sites.task_template import TaskTemplate, together


class WhoOrdered(AboutOrder, name="admin.who_ordered", horizon=2):
    intent = "Who placed order {number}?"

    def fits(self, data: AdminData) -> bool:
        """Whether its neighbours, one mistyped digit away, are other customers'."""
        near = [o.customer for o in data.orders.values() if o.number // 10 == self.number // 10]
        return near.count(data.orders[self.number].customer) == 1

    def evaluation(self, data: AdminData) -> Evaluation:
        return answer(data.orders[self.number].customer)

    def milestones(self, data: AdminData) -> Milestones:
        results = at("/search?*")
        return (
            ("The search box was used", either(acted("search", "Search"), acted("type", "Search"))),
            ("Search results are shown", results),
            ("The number was searched for", at(f"/search?q={self.number}")),
            ("The order is listed", both(results, shows(data.orders[self.number].date))),
        )

    def expert(self) -> Expert:
        seen = yield from search(str(self.number), rivals=NUMBER)
        yield from finish(read(seen, rf"{self.number} \S+ ({skills.PERSON})"), skills.PERSON)


class TrackingNumber(AboutOrder, name="admin.tracking_number", horizon=3):
    intent = "What is the tracking number of order {number}?"

    def evaluation(self, data: AdminData) -> Evaluation:
        shipment = data.orders[self.number].shipment
        return answer_or_none(shipment.tracking if shipment else "", "The order has no shipment.")

    def milestones(self, data: AdminData) -> Milestones:
        opened = skills.open_order.reached(self.number)
        shipment = "tracking" if data.orders[self.number].shipment else "No shipment"
        return (
            ("The number was searched for", either(at(f"/search?q={self.number}"), opened)),
            ("An order is open", at("/orders/*")),
            ("The order is open", opened),
            ("The order's shipment is shown", both(opened, shows(shipment))),
        )

    def expert(self) -> Expert:
        # A mistyped number may lead to another order without a shipment, which would be right by chance.
        seen = yield from skills.open_order(self.number, rivals=None)
        yield from finish(read(seen, r"tracking ([A-Z]{2}\d{5})", lacking=UNANSWERABLE), r"[A-Z]{2}\d{5}")


class InvoiceTotal(AboutOrder, name="admin.invoice_total", horizon=5, split="validation"):
    intent = "What is the total of the invoice for order {number}?"

    def evaluation(self, data: AdminData) -> Evaluation:
        order = data.orders[self.number]
        return answer_or_none(f"${order.total}" if order.invoice else "", "The order has no invoice.")

    def milestones(self, data: AdminData) -> Milestones:
        found = "1 invoices" if data.orders[self.number].invoice else "0 invoices"
        listed = both(at(f"/sales/invoices?order={self.number}*"), shows(found))
        return (
            ("The menu is used", either(acted("click", "Sales"), at("/sales/*"))),
            ("The invoices are shown", skills.open_table.reached("Invoices")),
            ("The order's number is written", either(has("Order", str(self.number)), listed)),
            ("The invoices of the order are shown", listed),
        )

    def expert(self) -> Expert:
        yield from skills.open_table("Invoices")
        seen = yield from skills.filter_rows("Order", str(self.number))
        yield from finish(read(seen, rf"Order {self.number} (\$\d+)", lacking=UNANSWERABLE), r"\$\d+")


class CountOrders(TaskTemplate, name="admin.count_orders", horizon=8):
    intent = "How many orders with the status {status} were placed in {month}?"
    status: str = together(sampling.status_and_month)
    month: str

    def counts(self, data: AdminData) -> dict[str, int]:
        """Return the number of the month's orders by status, and of all."""
        start, end = month_bounds(self.month)
        found = [order.status for order in data.orders.values() if start <= order.date <= end]
        return {ALL: len(found), **{status: found.count(status) for status in STATUSES}}

    def fits(self, data: AdminData) -> bool:
        """Whether there are some, and not as many as of another status in the month."""
        counts = self.counts(data)
        return counts[self.status] > 0 and list(counts.values()).count(counts[self.status]) == 1

    def evaluation(self, data: AdminData) -> Evaluation:
        return answer(str(self.counts(data)[self.status]))

    def milestones(self, data: AdminData) -> Milestones:
        start, end = month_bounds(self.month)
        done = at(f"/orders?*status={self.status.replace(' ', '+')}*start={start}*end={end}*")
        return (
            ("The orders are shown", skills.open_table.reached("Orders")),
            ("The status is chosen", either(has("Status", self.status), done)),
            ("The month is written", towards(done, has("From", start), has("To", end))),
            ("The orders are filtered", done),
        )

    def expert(self) -> Expert:
        start, end = month_bounds(self.month)
        yield from skills.open_table("Orders")
        yield from click("Filters", "button")
        yield from choose("Status", self.status)
        yield from write({"From": start, "To": end})
        seen = yield from click("Filter", "button")
        yield from finish(read(seen, r"(\d+) orders"), r"\b\d{1,2}\b")
