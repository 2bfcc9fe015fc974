"""Pages about one order and the table of all: hold, release, cancel, invoice, ship, refund, comment."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.admin.access import admin, known, logged_in
from sites.admin.grid import ALL, CHOOSE, Grid, contains, filters_of, grid, in_period, passes
from sites.admin.records import Order
from sites.admin.state import AdminState
from sites.admin.words import CARRIERS, ON_HOLD, PENDING, REFUND_REASONS, REFUNDED
from sites.forms import Filling, form, show
from sites.rendering import clean_text, read_form, render, see_other
from sites.shop.data import CANCELLED, DELIVERED, PROCESSING, SHIPPED
from sites.site import Refused

STATUSES = (PENDING, PROCESSING, ON_HOLD, SHIPPED, DELIVERED, CANCELLED, REFUNDED)
BULK = ("Hold", "Release", "Cancel")
"""What can be done to several orders at once."""
ACTIONS = ("hold", "release", "comment")
DOCUMENTS = ("cancel", "invoice", "ship", "refund")
LISTS = ("invoices", "shipments", "memos")
_TRACKING = re.compile(r"[A-Z]{2}\d{5}")


@logged_in
async def orders(request: Request) -> Response:
    """All orders, newest first, filtered by customer, status and date."""
    return render(request, "admin/orders.html", grid=_grid(request), statuses=(ALL, *STATUSES), actions=(CHOOSE, *BULK))


def _grid(request: Request) -> Grid:
    wanted = filters_of(request, customer="", status=ALL, start="", end="")
    rows = [
        order
        for order in sorted(admin(request).orders.all(), key=lambda order: (order.date, order.number), reverse=True)
        if contains(order.customer, wanted["customer"])
        and passes(order.status, wanted["status"])
        and in_period(order.date, wanted["start"], wanted["end"])
    ]
    return grid(request, rows, wanted)


@logged_in
async def bulk(request: Request) -> Response:
    """Do the same to all ticked orders; those that refuse are named."""
    state, sent = admin(request), await request.form(max_files=0)
    do = {"Hold": state.hold, "Release": state.release, "Cancel": state.cancel}.get(str(sent.get("action")))
    numbers = [int(str(value)) for value in sent.getlist("order") if re.fullmatch(r"\d{1,6}", str(value))]
    if not numbers or do is None:
        state.flash("Select orders and an action")
        return see_other("/orders")
    done = 0
    for number in numbers:
        with state.telling():
            do(known(state.orders, number))
            done += 1
    if done:
        state.flash(f"Changed {done} order{'s' if done != 1 else ''}")
    return see_other("/orders")


@logged_in
async def order(request: Request) -> Response:
    """One order with its documents and its history."""
    return render(request, "admin/order.html", order=_order(request))


@logged_in
async def act(request: Request) -> Response:
    """Hold or release an order, or add a comment to it."""
    state, found, action = admin(request), _order(request), _kind(request, ACTIONS)
    sent = await read_form(request)
    with state.telling():
        if action == "hold":
            state.hold(found)
            state.flash("The order is on hold")
        elif action == "release":
            state.release(found)
            state.flash("The order is released")
        else:
            state.comment(found, sent.get("comment", ""), notified="notify" in sent)
            state.flash("The comment is added")
    return see_other(f"/orders/{found.number}")


@logged_in
@form("admin/order_{kind}.html")
def document(request: Request) -> Filling:
    """The forms that cancel, invoice, ship or refund an order; each asks once more before it does so."""
    state, found, kind = admin(request), _order(request), _kind(request, DOCUMENTS)
    fields = {"comment": "", "carrier": CARRIERS[0], "tracking": "", "reason": REFUND_REASONS[0]}
    fields["amount"] = str(found.total)
    sent = yield show(fields, order=found, carriers=CARRIERS, reasons=REFUND_REASONS)
    state.flash(_carry_out(state, found, kind, sent))
    return f"/orders/{found.number}"


def _carry_out(state: AdminState, found: Order, kind: str, fields: dict[str, str]) -> str:
    """Do what one of the forms asks for and return what to tell the user; raise ``Refused``."""
    if kind == "cancel":
        state.cancel(found, fields["comment"])
        return "The order is cancelled"
    if kind == "invoice":
        state.invoice(found)
        return "The invoice is created"
    if kind == "ship":
        if fields["carrier"] not in CARRIERS:
            raise Refused("Choose a carrier")
        if not _TRACKING.fullmatch(fields["tracking"]):
            raise Refused("A tracking number is two letters and five digits")
        state.ship(found, fields["carrier"], fields["tracking"])
        return "The shipment is created"
    if fields["reason"] not in REFUND_REASONS:
        raise Refused("Choose a reason")
    amount = fields["amount"]
    state.refund(found, fields["reason"], int(amount) if re.fullmatch(r"\d{1,6}", amount) else 0)
    return "The credit memo is created"


@logged_in
async def documents(request: Request) -> Response:
    """All invoices, shipments or credit memos, newest first."""
    kind = _kind(request, LISTS)
    number = clean_text(request.query_params.get("order", ""))
    numbers = {
        "invoices": lambda o: o.invoice and o.invoice.number,
        "shipments": lambda o: o.shipment and o.shipment.number,
        "memos": lambda o: o.memo and o.memo.number,
    }[kind]
    rows = sorted((o for o in admin(request).orders.all() if numbers(o)), key=numbers, reverse=True)
    rows = [o for o in rows if number in ("", str(o.number))]
    return render(request, f"admin/{kind}.html", grid=grid(request, rows, {"order": number}))


def _kind(request: Request, kinds: tuple[str, ...]) -> str:
    kind: str = request.path_params["kind"]
    if kind not in kinds:
        raise HTTPException(404)
    return kind


def _order(request: Request) -> Order:
    return known(admin(request).orders, request.path_params["number"])


ROUTES = (
    Route("/orders", orders),
    Route("/orders/bulk", bulk, methods=["POST"]),
    Route("/orders/{number:int}", order),
    Route("/orders/{number:int}/do/{kind}", act, methods=["POST"]),
    Route("/orders/{number:int}/{kind}", document, methods=["GET", "POST"]),
    Route("/sales/{kind}", documents),
)
"""Routes of orders and their documents."""
