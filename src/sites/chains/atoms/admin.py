"""The back office's atoms: orders and content pages."""

from __future__ import annotations

from collections.abc import Iterator

from sites.admin import sampling, skills
from sites.admin.checks import at, changed_order, changed_page, equals, includes, record, recorded, shipped
from sites.admin.data import AdminData
from sites.admin.dates import TODAY
from sites.admin.words import COMMENTS, ON_HOLD, PAGE_TITLES
from sites.chains.atom import Atom
from sites.checks import Check, Target, both, shows
from sites.experts import Actions
from sites.shop.data import CANCELLED, SHIPPED
from sites.skills import click
from sites.task_template import drawn, one_of, together


class _OfOrder(Atom):
    """About one order."""

    number: int = drawn(sampling.open_order)

    @property
    def order(self) -> str:
        return f"/orders/{self.number}"

    def things(self, data: AdminData) -> Iterator[str]:
        yield self.order


class Hold(_OfOrder, name="admin.hold", length=3):
    wordings = (
        "Put order {number} on hold",
        "Hold order {number}",
        "Find order {number} and put it on hold",
        "Order {number} must wait: put it on hold",
        "Let order {number} be on hold",
        "See to it that order {number} is held",
    )

    def expert(self) -> Actions:
        return (yield from skills.hold_order(self.number))

    def path(self, data: AdminData) -> str:
        return f"{self.order}/do/hold"

    def done(self, data: AdminData) -> Check:
        return skills.hold_order.reached(self.number)

    def wanted(self, data: AdminData) -> tuple[Target, ...]:
        return (record(*changed_order(data, self.number, ON_HOLD)),)


class Comment(_OfOrder, name="admin.comment", length=4):
    wordings = (
        'Add the comment "{comment}" to order {number}',
        'Comment on order {number}: "{comment}"',
        'To order {number}, add the comment "{comment}"',
        'Write "{comment}" as a comment of order {number}',
        'Let order {number} have the comment "{comment}"',
        'With "{comment}", comment on order {number}',
    )
    comment: str = one_of(COMMENTS)

    def expert(self) -> Actions:
        yield from skills.open_order(self.number)
        return (yield from skills.comment(self.comment))

    def path(self, data: AdminData) -> str:
        return f"{self.order}/do/comment"

    def done(self, data: AdminData) -> Check:
        return both(at(self.order), skills.comment.reached(self.comment))

    def wanted(self, data: AdminData) -> tuple[Target, ...]:
        return (equals(self.order, ".comment", f"{TODAY}: {self.comment}"),)


class Cancel(_OfOrder, name="admin.cancel", length=5):
    wordings = (
        'Cancel order {number} with the comment "{comment}"',
        'Cancel order {number} and comment "{comment}"',
        'With the comment "{comment}", cancel order {number}',
        'Order {number} will not be sent: cancel it, saying "{comment}"',
        'Let order {number} be cancelled; comment "{comment}"',
        'Write the comment "{comment}" when you cancel order {number}',
    )
    comment: str = one_of(COMMENTS)

    def expert(self) -> Actions:
        return (yield from skills.cancel_order(self.number, self.comment))

    def path(self, data: AdminData) -> str:
        return f"{self.order}/cancel"

    def done(self, data: AdminData) -> Check:
        return skills.cancel_order.reached(self.number, self.comment)

    def wanted(self, data: AdminData) -> tuple[Target, ...]:
        told = equals(self.order, ".comment", f"{TODAY}: {self.comment}")
        return (record(*changed_order(data, self.number, CANCELLED)), told)


class Invoice(_OfOrder, name="admin.invoice", length=4):
    wordings = (
        "Invoice order {number}",
        "Submit the invoice of order {number}",
        "For order {number}, make an invoice",
        "Order {number} has no invoice: submit it",
        "Let order {number} have its invoice",
        "Find order {number} and invoice it",
    )
    number: int = drawn(sampling.unpaid_order)

    def expert(self) -> Actions:
        yield from skills.open_order(self.number)
        yield from click("Invoice", "link")
        return (yield from click("Submit invoice", "button"))

    def path(self, data: AdminData) -> str:
        return f"{self.order}/invoice"

    def done(self, data: AdminData) -> Check:
        return both(at(self.order), shows("The invoice is created"))

    def wanted(self, data: AdminData) -> tuple[Target, ...]:
        return (includes(self.order, "#invoice", TODAY),)


class Ship(_OfOrder, name="admin.ship", length=6):
    wordings = (
        "Ship order {number} by {carrier} with the tracking number {tracking}",
        "Send order {number} by {carrier}, tracking number {tracking}",
        "By {carrier}, ship order {number} with the tracking number {tracking}",
        "With the tracking number {tracking}, ship order {number} by {carrier}",
        "Let order {number} be shipped: carrier {carrier}, tracking number {tracking}",
        "The tracking number is {tracking}: ship order {number} by {carrier}",
    )
    carrier: str = together(sampling.to_ship)
    tracking: str

    def expert(self) -> Actions:
        yield from skills.open_order(self.number)
        return (yield from skills.ship(self.carrier, self.tracking))

    def path(self, data: AdminData) -> str:
        return f"{self.order}/ship"

    def done(self, data: AdminData) -> Check:
        return both(at(self.order), skills.ship.reached(self.carrier, self.tracking))

    def wanted(self, data: AdminData) -> tuple[Target, ...]:
        parcel = includes(self.order, "#shipment", shipped(self.carrier, self.tracking))
        return (record(*changed_order(data, self.number, SHIPPED)), parcel)


class RenamePage(Atom, name="admin.rename_page", length=5):
    wordings = (
        'Change the title of the page {page} to "{title}"',
        'Call the page {page} "{title}"',
        'Give the page {page} the title "{title}"',
        'The page {page} needs another title: "{title}"',
        'Let "{title}" be the title of the page {page}',
        'From {page} to "{title}": change the title of this page',
    )
    page: str = drawn(sampling.page)
    title: str = one_of(PAGE_TITLES)

    def _record(self, data: AdminData) -> tuple[str, str]:
        return changed_page(data, self.page, title=self.title)

    def expert(self) -> Actions:
        return (yield from skills.edit_page(self.page, "Title", self.title))

    def path(self, data: AdminData) -> str:
        return self._record(data)[0]

    def done(self, data: AdminData) -> Check:
        return recorded(*self._record(data))

    def wanted(self, data: AdminData) -> tuple[Target, ...]:
        return (record(*self._record(data)),)
