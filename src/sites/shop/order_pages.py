"""Pages of past orders: the list, one order, cancelling, ordering again."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.forms import Filling, form, refuse_if, show
from sites.paging import listing
from sites.rendering import render, see_other
from sites.shop.access import customer, known_order, login_first, shop
from sites.shop.data import REASONS

ORDERS_PER_PAGE = 8


@login_first
async def orders(request: Request) -> Response:
    """All orders, newest first."""
    page = listing(request, customer(request).orders[::-1], ORDERS_PER_PAGE, "?page=")
    return render(request, "shop/orders.html", page=page)


@login_first
async def last_order(request: Request) -> Response:
    """The newest order, at an address that does not depend on its number."""
    placed = customer(request).orders
    if not placed:
        raise HTTPException(404)
    return see_other(f"/orders/{placed[-1].number}")


@login_first
async def order(request: Request) -> Response:
    """One order."""
    return render(request, "shop/order.html", order=known_order(request))


@login_first
@form("shop/order_cancel.html")
def cancel(request: Request) -> Filling:
    """The form that cancels an order."""
    state, found = shop(request), known_order(request)
    sent = yield show({"reason": ""}, order=found, reasons=REASONS)
    refuse_if((sent["reason"] not in REASONS, "Choose a reason"))
    state.cancel_order(customer(request), found.number, sent["reason"])
    state.flash("The order is cancelled")
    return f"/orders/{found.number}"


@login_first
async def again(request: Request) -> Response:
    """Put an order's items into the cart."""
    state, found = shop(request), known_order(request)
    with state.telling():
        state.order_again(found)
        state.flash(f"Order {found.number} is in the cart")
    return see_other("/cart")


ROUTES = (
    Route("/orders", orders),
    Route("/orders/last", last_order),
    Route("/orders/{number:int}", order),
    Route("/orders/{number:int}/cancel", cancel, methods=["GET", "POST"]),
    Route("/orders/{number:int}/again", again, methods=["POST"]),
)
"""Routes of past orders."""
