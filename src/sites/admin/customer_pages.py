"""The table of customers, one customer with the latest orders, and the form."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.admin.access import admin, known, logged_in
from sites.admin.grid import ALL, contains, filters_of, grid, passes
from sites.admin.records import Customer
from sites.admin.words import GROUPS
from sites.forms import Filling, form, refuse_if, show
from sites.rendering import render

_NAME = re.compile(r"[A-Za-z][A-Za-z ]{1,38}[A-Za-z]")
_EMAIL = re.compile(r"[a-z0-9.-]{1,30}@[a-z0-9-]{1,20}(\.[a-z0-9-]{2,20})+")
_PHONE = re.compile(r"(\d{3}-\d{4})?")
_ORDERS = 4


@logged_in
async def customers(request: Request) -> Response:
    """All customers, filtered by name and group."""
    wanted = filters_of(request, name="", group=ALL)
    rows = [
        customer
        for customer in admin(request).customers.all()
        if contains(customer.name, wanted["name"]) and passes(customer.group, wanted["group"])
    ]
    return render(request, "admin/customers.html", grid=grid(request, rows, wanted), groups=(ALL, *GROUPS))


@logged_in
async def customer(request: Request) -> Response:
    """One customer."""
    found = known(admin(request).customers, request.path_params["email"])
    orders = [order for order in admin(request).orders.all() if order.email == found.email]
    return render(request, "admin/customer.html", customer=found, orders=orders[: -_ORDERS - 1 : -1], count=len(orders))


@logged_in
@form("admin/customer_form.html", whole=True)
def edit(request: Request) -> Filling:
    """The form of one customer, whose email stays, or of a new one."""
    state, email = admin(request), request.path_params.get("email")
    found = known(state.customers, email) if email else None
    blank = {"name": "", "email": "", "group": GROUPS[0], "phone": "", "city": ""}
    fields = {name: getattr(found, name) for name in blank} if found else blank
    sent = yield show(fields, customer=found, groups=GROUPS)
    sent["email"] = email or sent["email"]
    refuse_if(
        (not _NAME.fullmatch(sent["name"]), "Write a name of letters"),
        (not _EMAIL.fullmatch(sent["email"]), "Write a valid email"),
        (sent["group"] not in GROUPS, "Choose a group"),
        (not _PHONE.fullmatch(sent["phone"]), "A phone number is like 555-1234"),
        (not _NAME.fullmatch(sent["city"]), "Write a city"),
    )
    state.save_customer(Customer(**sent), new=found is None)
    state.flash("The customer is saved")
    return f"/customers/{sent['email']}"


_FORM = ["GET", "POST"]
ROUTES = (
    Route("/customers", customers),
    Route("/customers/new", edit, methods=_FORM),
    Route("/customers/{email}", customer),
    Route("/customers/{email}/edit", edit, methods=_FORM),
)
"""Routes of customers."""
