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
from sites.admin.data import AdminData, build
from sites.admin.state import AdminState
from sites.admin.tasks import TEMPLATES
from sites.admin.words import STAFF
from sites.site import Site


def new_state(data: AdminData, login: bool) -> AdminState:
    """Return a fresh session of the back office, logged in as the usual member of staff when ``login``."""
    return AdminState(data, STAFF[0] if login else None)


ADMIN = Site(
    name="admin",
    routes=(
        *front_pages.ROUTES,
        *order_pages.ROUTES,
        *product_pages.ROUTES,
        *customer_pages.ROUTES,
        *review_pages.ROUTES,
        *marketing_pages.ROUTES,
        *report_pages.ROUTES,
    ),
    build=build,
    new_state=new_state,
    templates=TEMPLATES,
    account=lambda data: (STAFF[0], data.passwords[STAFF[0]]),
)
"""The back office: orders and their documents, products, customers, reviews, coupons, pages, reports."""
