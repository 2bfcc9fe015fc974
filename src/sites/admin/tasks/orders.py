"""Tasks that change orders: hold, cancel, comment, ship, invoice, and several at once."""

from __future__ import annotations

from sites.admin import sampling, skills
from sites.admin.checks import at, changed_order, equals, includes, record, recorded, shipped, ticked
from sites.admin.data import AdminData
from sites.admin.dates import TODAY
from sites.admin.grid import ROWS
from sites.admin.tasks.about import AboutOrder, Saved
from sites.admin.words import COMMENTS, ON_HOLD, PENDING
from sites.checks import Evaluation, Milestones, both, either, has, pages, shows, towards
from sites.experts import Expert
from sites.shop.data import CANCELLED, SHIPPED
from sites.skills import choose, click
from sites.task_template import TaskTemplate, drawn, one_of, together


class HoldOrder(AboutOrder, Saved, name="admin.hold_order", horizon=4):
    intent = "Put order {number} on hold."
    number: int = drawn(sampling.open_order)

    def record(self, data: AdminData) -> tuple[str, str]:
        return changed_order(data, self.number, ON_HOLD)

    def milestones(self, data: AdminData) -> Milestones:
        opened = skills.open_order.reached(self.number)
        return (
            ("Something is searched for or listed", either(at("/search?*"), at("/orders*"))),
            ("The order is listed", either(shows(str(self.number)), opened)),
            ("The order is open", opened),
            ("The order is on hold", recorded(*self.record(data))),
        )

    def expert(self) -> Expert:
        yield from skills.hold_order(self.number)


class CancelOrder(AboutOrder, name="admin.cancel_order", horizon=6):
    intent = "Cancel order {number} with the comment: {comment}"
    number: int = drawn(sampling.open_order)
    comment: str = one_of(COMMENTS)

    def evaluation(self, data: AdminData) -> Evaluation:
        told = equals(self.path, ".comment", f"{TODAY}: {self.comment}")
        return pages(record(*changed_order(data, self.number, CANCELLED)), told)

    def milestones(self, data: AdminData) -> Milestones:
        form, done = at(f"{self.path}/cancel"), recorded(*changed_order(data, self.number, CANCELLED))
        return (
            ("The order is open", at(f"{self.path}*")),
            ("The form is open", either(form, done)),
            ("The comment is written", towards(done, form, has("Comment", self.comment))),
            ("The order is cancelled", done),
        )

    def expert(self) -> Expert:
        yield from skills.cancel_order(self.number, self.comment)


class CommentOrder(AboutOrder, name="admin.comment_order", horizon=6):
    intent = "Add a comment to order {number} and notify the customer: {comment}"
    comment: str = one_of(COMMENTS)

    def evaluation(self, data: AdminData) -> Evaluation:
        return pages(equals(self.path, ".comment", f"{TODAY}: {self.comment} (customer notified)"))

    def milestones(self, data: AdminData) -> Milestones:
        opened = skills.open_order.reached(self.number)
        done = both(opened, skills.comment.reached(self.comment, notify=True))
        return (
            ("The order is open", opened),
            ("The notice is ticked", towards(done, opened, ticked(["Notify customer"]))),
            ("The comment is written", towards(done, opened, has("Comment", self.comment))),
            ("The comment is added", done),
        )

    def expert(self) -> Expert:
        yield from skills.open_order(self.number)
        yield from skills.comment(self.comment, notify=True)


class ShipOrder(AboutOrder, name="admin.ship_order", horizon=7):
    intent = "Ship order {number} by {carrier} with the tracking number {tracking}."
    number: int = drawn(sampling.open_order)
    carrier: str = together(sampling.to_ship)
    tracking: str

    def evaluation(self, data: AdminData) -> Evaluation:
        parcel = includes(self.path, "#shipment", shipped(self.carrier, self.tracking))
        return pages(record(*changed_order(data, self.number, SHIPPED)), parcel)

    def milestones(self, data: AdminData) -> Milestones:
        form = at(f"{self.path}/ship")
        done = both(at(self.path), skills.ship.reached(self.carrier, self.tracking))
        return (
            ("The order is open", at(f"{self.path}*")),
            ("The form is open", either(form, done)),
            ("The carrier is chosen", towards(done, form, has("Carrier", self.carrier))),
            ("The order is shipped", done),
        )

    def expert(self) -> Expert:
        yield from skills.open_order(self.number)
        yield from skills.ship(self.carrier, self.tracking)


class FulfilOrder(ShipOrder, name="admin.fulfil_order", horizon=11):
    intent = (
        "Invoice order {number}, ship it by {carrier} with the tracking number {tracking}, and add the "
        "comment: {comment}"
    )
    number: int = drawn(sampling.unpaid_order)
    comment: str = one_of(COMMENTS)

    def evaluation(self, data: AdminData) -> Evaluation:
        invoiced = includes(self.path, "#invoice", TODAY)
        told = equals(self.path, ".comment", f"{TODAY}: {self.comment}")
        return pages(*super().evaluation(data)["program_html"], invoiced, told)

    def milestones(self, data: AdminData) -> Milestones:
        opened, parcel = skills.open_order.reached(self.number), shipped(self.carrier, self.tracking)
        return (
            ("The order is open", opened),
            ("The invoice is created", both(opened, shows(TODAY))),
            ("The order is shipped", both(opened, shows(TODAY, parcel))),
            ("The comment is added", both(opened, shows(parcel, f"{TODAY}: {self.comment}"))),
        )

    def expert(self) -> Expert:
        yield from skills.open_order(self.number)
        yield from click("Invoice", "link")
        yield from click("Submit invoice", "button")
        yield from skills.ship(self.carrier, self.tracking)
        yield from skills.comment(self.comment)


class BulkOrders(TaskTemplate, name="admin.bulk_orders"):
    intent = "{action} the pending orders {first}, {second} and {third}."
    action: str = together(sampling.three_pending)
    first: int
    second: int
    third: int

    @property
    def boxes(self) -> list[str]:
        return [f"Select {number}" for number in (self.first, self.second, self.third)]

    def evaluation(self, data: AdminData) -> Evaluation:
        status, numbers = sampling.BULK[self.action], (self.first, self.second, self.third)
        records = [record(*changed_order(data, number, status)) for number in numbers]
        count = len(numbers) + sum(order.status == status for order in data.orders.values())
        return pages(*records, equals(f"/orders?status={status}", "#count", f"{count} orders: {status}"))

    def milestones(self, data: AdminData) -> Milestones:
        chosen, done = skills.tick_all.reached(self.boxes), both(at("/orders"), shows("Changed 3 orders"))
        return (
            ("The orders are shown", skills.open_table.reached("Orders")),
            ("The orders are ticked", either(chosen, done)),
            ("The action is chosen", towards(done, chosen, has("Action", self.action))),
            ("The orders are changed", done),
        )

    def expert(self) -> Expert:
        yield from skills.open_table("Orders")
        yield from click("Filters", "button")
        yield from choose("Status", PENDING)
        seen = yield from click("Filter", "button")
        for _ in range(sampling.BULK_PAGES):
            if self.boxes[0] not in skills.rows(seen):
                seen = yield from click("Next page", "link")
        yield from skills.tick_all(self.boxes)
        yield from choose("Action", self.action)
        yield from click("Apply", "button")

    def steps(self, data: AdminData) -> int:
        return 11 + sampling.pending(data).index(self.first) // ROWS
