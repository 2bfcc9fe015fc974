"""What one session changes in the back office, and who is logged in.

Owns the rules: what may be held, cancelled, invoiced, shipped or refunded, and how long a log-in lasts.
Invariants: base data is never touched; a refused change raises ``Refused`` and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sites.admin import words
from sites.admin.data import AdminData
from sites.admin.dates import TODAY
from sites.admin.records import Coupon, CreditMemo, Customer, Invoice, Order, Product, Review, Shipment
from sites.overlay import Overlay
from sites.shop.data import CANCELLED, PROCESSING, SHIPPED
from sites.site import Refused, State

MAX_ENTRIES = 50
"""Most records of a kind, or comments of an order, that a session may add."""
OPEN = (words.PENDING, PROCESSING)
"""Statuses of orders that can be held, cancelled, invoiced and shipped."""


class AdminState(State):
    """One session of the back office."""

    def __init__(self, data: AdminData, user: str | None) -> None:
        super().__init__()
        self.data = data
        self.user = user
        self.expired = False
        self._pages_left: int | None = None
        """How many more pages a limited log-in lasts; below 0 once that is over."""
        self._shown: set[str] = set()
        self.orders = Overlay(data.orders)
        self.products = Overlay(data.products)
        self.customers = Overlay(data.customers)
        self.reviews = Overlay(data.reviews)
        self.coupons = Overlay(data.coupons)
        self.pages = Overlay(data.pages)

    def log_in(self, user: str, password: str) -> None:
        """Log in for good, or refuse without saying which of the two was wrong."""
        if self.data.passwords.get(user.lower()) != password:
            raise Refused("User name or password is wrong")
        self.user, self.expired = user.lower(), False
        if self._pages_left is not None:
            self._pages_left = -1

    def log_out(self) -> None:
        """Log out; nothing that was changed is lost."""
        self.user, self.expired = None, False

    def limit(self, pages: int) -> None:
        """Let the log-in run out after so many more pages, once in a session."""
        if self._pages_left is None:
            self._pages_left = pages

    def lets_through(self, address: str, *, change: bool) -> bool:
        """Count a page of a log-in that was limited; return False when it has run out.

        What was shown before is shown again for nothing, as a browser would from its memory; a change never is.
        """
        if self._pages_left is None or (address in self._shown and not change):
            return True
        if self.expired or self._pages_left < 0:
            return not self.expired
        self._pages_left -= 1
        self.expired = self._pages_left < 0
        return not self.expired

    def showed(self, address: str) -> None:
        """Remember a page that was shown while the log-in is limited."""
        if self._pages_left is not None and self._pages_left >= 0:
            self._shown.add(address)

    def hold(self, order: Order) -> None:
        """Put an order on hold."""
        self._move(order, OPEN, words.ON_HOLD, "put on hold")

    def release(self, order: Order) -> None:
        """Take an order off hold; an invoiced one goes on where it was."""
        to = PROCESSING if order.invoice else words.PENDING
        self._move(order, (words.ON_HOLD,), to, "released")

    def cancel(self, order: Order, comment: str = "") -> None:
        """Cancel an order that has not left the house."""
        self._move(order, (*OPEN, words.ON_HOLD), CANCELLED, "cancelled", _said(comment) if comment else "")

    def comment(self, order: Order, text: str, *, notified: bool) -> None:
        """Add a comment to an order's history."""
        if not text:
            raise Refused("Write a comment")
        if len(order.comments) >= MAX_ENTRIES:
            raise Refused("There is no room for more")
        self._put(replace(order, comments=(*order.comments, _said(text, notified=notified))))

    def invoice(self, order: Order) -> None:
        """Bill an order."""
        if order.invoice or order.status not in OPEN:
            raise Refused(f"Order {order.number} cannot be invoiced")
        number = 1 + max(other.invoice.number for other in self.orders.all() if other.invoice)
        self._put(replace(order, status=PROCESSING, invoice=Invoice(number, TODAY)))

    def ship(self, order: Order, carrier: str, tracking: str) -> None:
        """Send an order off."""
        if order.shipment or order.status not in OPEN:
            raise Refused(f"Order {order.number} cannot be shipped")
        number = 1 + max(other.shipment.number for other in self.orders.all() if other.shipment)
        self._put(replace(order, status=SHIPPED, shipment=Shipment(number, carrier, tracking)))

    def refund(self, order: Order, reason: str, amount: int) -> None:
        """Give money back for an invoiced order."""
        if order.invoice is None or order.memo:
            raise Refused(f"Order {order.number} cannot be refunded")
        if not 1 <= amount <= order.total:
            raise Refused(f"Refund must be 1 to {order.total}")
        number = 1 + max((other.memo.number for other in self.orders.all() if other.memo), default=9000)
        self._put(replace(order, status=words.REFUNDED, memo=CreditMemo(number, reason, amount)))

    def save_product(self, product: Product) -> None:
        """Add or replace a product."""
        if any(other.sku == product.sku and other.slug != product.slug for other in self.products.all()):
            raise Refused("This SKU is taken")
        _bounded(self.products, product.slug)
        self.products.put(product.slug, product)

    def save_customer(self, customer: Customer, *, new: bool) -> None:
        """Add or replace a customer."""
        if new and self.customers.get(customer.email):
            raise Refused("This email is taken")
        _bounded(self.customers, customer.email)
        self.customers.put(customer.email, customer)

    def save_coupon(self, coupon: Coupon, *, new: bool) -> None:
        """Add or replace a coupon."""
        if new and self.coupons.get(coupon.code):
            raise Refused("This code is taken")
        _bounded(self.coupons, coupon.code)
        self.coupons.put(coupon.code, coupon)

    def decide(self, reviews: Sequence[Review], status: str) -> None:
        """Give reviews a status."""
        for review in reviews:
            self.reviews.put(review.number, replace(review, status=status))

    def _move(self, order: Order, allowed: Sequence[str], status: str, done: str, said: str = "") -> None:
        if order.status not in allowed:
            raise Refused(f"Order {order.number} cannot be {done}")
        self._put(replace(order, status=status, comments=(*order.comments, said) if said else order.comments))

    def _put(self, order: Order) -> None:
        self.orders.put(order.number, order)


def _said(text: str, *, notified: bool = False) -> str:
    return f"{TODAY}: {text}{' (customer notified)' if notified else ''}"


def _bounded(records: Overlay[str, Product] | Overlay[str, Customer] | Overlay[str, Coupon], key: str) -> None:
    if records.get(key) is None and records.added >= MAX_ENTRIES:
        raise Refused("There is no room for more")
