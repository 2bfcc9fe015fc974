"""Pages of the cart and of the checkout: address, shipping, payment, placed.

Owns the order of the checkout's pages: each page needs what the earlier ones chose, and sends back
those who have not chosen it.
"""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.rendering import read_form, render, see_other
from sites.shop.access import customer, login_first, shop
from sites.shop.catalogue_pages import quantity
from sites.shop.data import PAYMENTS, SHIPPING
from sites.shop.state import Refused, ShopState, find_address


async def cart(request: Request) -> Response:
    """What is in the cart."""
    lines = shop(request).cart
    items = sum(line.quantity for line in lines)
    total = sum(line.quantity * line.price for line in lines)
    return render(request, "shop/cart.html", lines=lines, items=items, total=total)


async def change_quantity(request: Request) -> Response:
    """Change the quantity of one line."""
    state, form = shop(request), await read_form(request)
    try:
        state.set_quantity(request.path_params["index"], quantity(form.get("quantity", "")))
    except Refused as refusal:
        state.flash(str(refusal))
    else:
        state.flash("Quantity changed")
    return see_other("/cart")


async def remove(request: Request) -> Response:
    """Take one line out of the cart."""
    state = shop(request)
    try:
        state.flash(f"Removed {state.remove_line(request.path_params['index']).product.name}")
    except Refused as refusal:
        state.flash(str(refusal))
    return see_other("/cart")


@login_first
async def address(request: Request) -> Response:
    """First page: where to deliver."""
    state, buyer = shop(request), customer(request)
    if back := _sent_back(state):
        return back
    errors: list[str] = []
    if request.method == "POST":
        label = (await read_form(request)).get("address", "")
        if find_address(buyer, label):
            state.draft.address = label
            return see_other("/checkout/shipping")
        errors.append("Choose an address")
    chosen = state.draft.address or next((known.label for known in buyer.addresses), "")
    return render(
        request,
        "shop/checkout_address.html",
        status_code=422 if errors else 200,
        addresses=buyer.addresses,
        chosen=chosen,
        errors=errors,
    )


@login_first
async def shipping(request: Request) -> Response:
    """Second page: how to ship."""
    state = shop(request)
    where = find_address(customer(request), state.draft.address)
    if back := _sent_back(state):
        return back
    if where is None:
        return see_other("/checkout")
    errors: list[str] = []
    if request.method == "POST":
        method = (await read_form(request)).get("shipping", "")
        if method in SHIPPING:
            state.draft.shipping = method
            return see_other("/checkout/payment")
        errors.append("Choose a shipping method")
    return render(
        request,
        "shop/checkout_shipping.html",
        status_code=422 if errors else 200,
        address=where,
        methods=SHIPPING,
        chosen=state.draft.shipping or next(iter(SHIPPING)),
        errors=errors,
    )


@login_first
async def payment(request: Request) -> Response:
    """Last page: what is ordered, how it is paid, and the button that orders it."""
    state, buyer = shop(request), customer(request)
    where = find_address(buyer, state.draft.address)
    if back := _sent_back(state):
        return back
    if where is None or state.draft.shipping not in SHIPPING:
        return see_other("/checkout")
    errors: list[str] = []
    if request.method == "POST":
        try:
            order = state.place_order(buyer, (await read_form(request)).get("payment", ""))
        except Refused as refusal:
            errors.append(str(refusal))
        else:
            return see_other(f"/checkout/placed/{order.number}")
    return render(
        request,
        "shop/checkout_payment.html",
        status_code=422 if errors else 200,
        lines=state.cart,
        address=where,
        shipping=state.draft.shipping,
        total=sum(line.quantity * line.price for line in state.cart) + SHIPPING[state.draft.shipping],
        payments=PAYMENTS,
        errors=errors,
    )


@login_first
async def placed(request: Request) -> Response:
    """Thanks for an order."""
    number = request.path_params["number"]
    order = next((order for order in customer(request).orders if order.number == number), None)
    if order is None:
        raise HTTPException(404)
    return render(request, "shop/order_placed.html", order=order)


def _sent_back(state: ShopState) -> Response | None:
    if state.cart:
        return None
    state.flash("Your cart is empty")
    return see_other("/cart")


ROUTES = (
    Route("/cart", cart),
    Route("/cart/{index:int}", change_quantity, methods=["POST"]),
    Route("/cart/{index:int}/remove", remove, methods=["POST"]),
    Route("/checkout", address, methods=["GET", "POST"]),
    Route("/checkout/shipping", shipping, methods=["GET", "POST"]),
    Route("/checkout/payment", payment, methods=["GET", "POST"]),
    Route("/checkout/placed/{number:int}", placed),
)
"""Routes of the cart and the checkout."""
