"""The table of customers, one customer with the latest orders, and the form."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.admin.access import admin, known, logged_in
from sites.admin.grid import ALL, contains, filters_of, grid, matching, passes
from sites.admin.records import Customer
from sites.admin.state import Refused
from sites.admin.words import GROUPS
from sites.rendering import complaints, form_page, read_form, render, see_other

_NAME = re.compile(r"[A-Za-z][A-Za-z ]{1,38}[A-Za-z]")
_EMAIL = re.compile(r"[a-z0-9.-]{1,30}@[a-z0-9-]{1,20}(\.[a-z0-9-]{2,20})+")
_PHONE = re.compile(r"(\d{3}-\d{4})?")
_ORDERS = 4


@logged_in
async def customers(request: Request) -> Response:
    """All customers, filtered by name and group."""
    wanted = filters_of(request, name="", group=ALL)
    rows = matching(
        admin(request).customers.all(),
        lambda customer: contains(customer.name, wanted["name"]),
        lambda customer: passes(customer.group, wanted["group"]),
    )
    return render(request, "admin/customers.html", grid=grid(request, rows, wanted), groups=(ALL, *GROUPS))


@logged_in
async def customer(request: Request) -> Response:
    """One customer."""
    found = known(admin(request).customers, request.path_params["email"])
    orders = [order for order in admin(request).orders.all() if order.email == found.email]
    return render(request, "admin/customer.html", customer=found, orders=orders[: -_ORDERS - 1 : -1], count=len(orders))


@logged_in
async def edit(request: Request) -> Response:
    """The form of one customer, or of a new one."""
    state, email = admin(request), request.path_params.get("email")
    found = known(state.customers, email) if email else None
    fields = {"name": "", "email": "", "group": GROUPS[0], "phone": "", "city": ""}
    if found:
        fields = {name: getattr(found, name) for name in fields}
    errors: list[str] = []
    if request.method == "POST":
        form = await read_form(request)
        fields.update({name: form.get(name, "") for name in fields if name != "email" or not found})
        errors = _errors(fields)
        try:
            if not errors:
                state.save_customer(Customer(**fields), new=found is None)
        except Refused as refusal:
            errors.append(str(refusal))
        if not errors:
            state.flash("The customer is saved")
            return see_other(f"/customers/{fields['email']}")
    return form_page(request, "admin/customer_form.html", errors, customer=found, fields=fields, groups=GROUPS)


def _errors(fields: dict[str, str]) -> list[str]:
    """Say what is wrong with the fields of a customer."""
    return complaints(
        (not _NAME.fullmatch(fields["name"]), "Write a name of letters"),
        (not _EMAIL.fullmatch(fields["email"]), "Write a valid email"),
        (fields["group"] not in GROUPS, "Choose a group"),
        (not _PHONE.fullmatch(fields["phone"]), "A phone number is like 555-1234"),
        (not _NAME.fullmatch(fields["city"]), "Write a city"),
    )


_FORM = ["GET", "POST"]
ROUTES = (
    Route("/customers", customers),
    Route("/customers/new", edit, methods=_FORM),
    Route("/customers/{email}", customer),
    Route("/customers/{email}/edit", edit, methods=_FORM),
)
"""Routes of customers."""
