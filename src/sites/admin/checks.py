"""What the back office's tasks are judged by, beside what all sites share (``sites.checks``).

Pages of records say the whole record in ``#record``, tables their number of rows in ``#count``. Invariant: every
judged page fails its check in a fresh session.
"""

from __future__ import annotations

from collections.abc import Iterable

from sites.admin.data import slug_of
from sites.admin.records import Coupon, Product
from sites.admin.words import PRODUCT_STATUSES
from sites.checks import Check, PagesOf, Target, both, has, shows

_OFFICE = PagesOf("admin")
at, ends_at, equals, includes = _OFFICE.at, _OFFICE.ends_at, _OFFICE.equals, _OFFICE.includes


def product_path(name: str) -> str:
    """Return the path of the product of this name."""
    return f"/products/{slug_of(name)}"


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
