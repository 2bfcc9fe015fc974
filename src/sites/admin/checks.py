"""What the back office's tasks are judged by, beside what all sites share (``sites.checks``).

Pages of records say the whole record in ``#record``, tables their number of rows in ``#count``. Invariant: every
judged page fails its check in a fresh session.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sites.admin.data import AdminData, slug_of
from sites.admin.records import Coupon, Product
from sites.admin.words import PRODUCT_STATUSES
from sites.checks import Check, PagesOf, Target, both, has, shows

_OFFICE = PagesOf("admin")
at, ends_at, equals, includes = _OFFICE.at, _OFFICE.ends_at, _OFFICE.equals, _OFFICE.includes


def product_path(name: str) -> str:
    """Return the path of the product of this name."""
    return f"/products/{slug_of(name)}"


def changed_order(data: AdminData, number: int, status: str) -> tuple[str, str]:
    """Return the path of an order, and what its page says when it has this status."""
    return f"/orders/{number}", replace(data.orders[number], status=status).summary


def changed_product(data: AdminData, name: str, **changes: Any) -> tuple[str, str]:
    """Return the path of a product, and what its page says after these changes."""
    return product_path(name), replace(data.products[slug_of(name)], **changes).summary


def changed_page(data: AdminData, page: str, **changes: str) -> tuple[str, str]:
    """Return the path of a content page (which stays with a new title), and what it says after these changes."""
    return f"/pages/{slug_of(page)}", replace(data.pages[slug_of(page)], **changes).summary


def moved_customer(data: AdminData, name: str, group: str) -> tuple[str, str]:
    """Return the path of a customer, and what the page says when they are in this group."""
    customer = data.customer(name)
    return f"/customers/{customer.email}", replace(customer, group=group).summary


def new_product(name: str, sku: str, category: str, price: int, stock: int) -> tuple[str, str]:
    """Return the path of a product that is added, and what its page says."""
    return product_path(name), Product("", name, sku, category, price, stock, PRODUCT_STATUSES[0]).summary


def new_coupon(name: str, code: str, percent: int, group: str, start: str, end: str) -> tuple[str, str]:
    """Return the path of a coupon that is added, and what its page says."""
    return f"/coupons/{code}", Coupon(code, name, percent, group, start, end).summary


def shipped(carrier: str, tracking: str) -> str:
    """Return how an order's page ends the line about its shipment."""
    return f": {carrier}, tracking {tracking}"


def ticked(names: Iterable[str]) -> Check:
    """All checkboxes of these names are on."""
    return both(*(has(name, "checked", "checkbox") for name in names))


def recorded(path: str, summary: str) -> Check:
    """The page of a record is open and says this."""
    return both(at(path), shows(summary))


def record(path: str, summary: str) -> Target:
    """The record's page says exactly this."""
    return equals(path, "#record", summary)
