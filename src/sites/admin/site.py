"""The shop's back office as a ``Site``: its pages, data, state and tasks put together."""

from __future__ import annotations

from sites.admin import (
    customer_pages,
    front_pages,
    marketing_pages,
    order_pages,
    product_pages,
    report_pages,
    review_pages,
)
from sites.admin.data import build
from sites.admin.state import AdminState
from sites.admin.tasks import TEMPLATES
from sites.admin.words import STAFF
from sites.site import Site, routes_of

ADMIN = Site(
    name="admin",
    routes=routes_of(
        front_pages, order_pages, product_pages, customer_pages, review_pages, marketing_pages, report_pages
    ),
    build=build,
    new_state=lambda data, login: AdminState(data, STAFF[0] if login else None),
    templates=TEMPLATES,
    account=lambda data: (STAFF[0], data.passwords[STAFF[0]]),
)
"""The back office: orders and their documents, products, customers, reviews, coupons, pages, reports."""
