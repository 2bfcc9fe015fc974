"""Pages of the cart and of the checkout: address, shipping, payment, placed.

Owns the order of the checkout's pages: each page needs what the earlier ones chose, and sends back
those who have not chosen it.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.forms import Filling, form, refuse_if, show
from sites.rendering import read_form, render, see_other
from sites.shop.access import customer, known_order, login_first, shop
from sites.shop.catalogue_pages import quantity
from sites.shop.data import PAYMENTS, SHIPPING
from sites.shop.state import ShopState, find_address


async def cart(request: Request) -> Response:
    """What is in the cart."""
    state = shop(request)
    items = sum(line.quantity for line in state.cart)
    return render(request, "shop/cart.html", lines=state.cart, items=items, total=_total(state))


async def change_quantity(request: Request) -> Response:
    """Change the quantity of one line."""
    state, sent = shop(request), await read_form(request)
    with state.telling():
        state.set_quantity(request.path_params["index"], quantity(sent.get("quantity", "")))
        state.flash("Quantity changed")
    return see_other("/cart")


async def remove(request: Request) -> Response:
    """Take one line out of the cart."""
    state = shop(request)
    with state.telling():
        state.flash(f"Removed {state.remove_line(request.path_params['index']).product.name}")
    return see_other("/cart")


@login_first
@form("shop/checkout_address.html")
def address(request: Request) -> Filling:
    """First page: where to deliver."""
    state, buyer = shop(request), customer(request)
    if not _filled(state):
        return "/cart"
    chosen = state.draft.address or next((known.label for known in buyer.addresses), "")
    sent = yield show({"address": ""}, addresses=buyer.addresses, chosen=chosen)
    refuse_if((find_address(buyer, sent["address"]) is None, "Choose an address"))
    state.draft.address = sent["address"]
    return "/checkout/shipping"


@login_first
@form("shop/checkout_shipping.html")
def shipping(request: Request) -> Filling:
    """Second page: how to ship."""
    state = shop(request)
    where = find_address(customer(request), state.draft.address)
    if not _filled(state):
        return "/cart"
    if where is None:
        return "/checkout"
    chosen = state.draft.shipping or next(iter(SHIPPING))
    sent = yield show({"shipping": ""}, address=where, methods=SHIPPING, chosen=chosen)
    refuse_if((sent["shipping"] not in SHIPPING, "Choose a shipping method"))
    state.draft.shipping = sent["shipping"]
    return "/checkout/payment"


@login_first
@form("shop/checkout_payment.html")
def payment(request: Request) -> Filling:
    """Last page: what is ordered, how it is paid, and the button that orders it."""
    state, buyer = shop(request), customer(request)
    where = find_address(buyer, state.draft.address)
    if not _filled(state):
        return "/cart"
    if where is None or state.draft.shipping not in SHIPPING:
        return "/checkout"
    sent = yield show(
        {"payment": ""},
        lines=state.cart,
        address=where,
        shipping=state.draft.shipping,
        total=_total(state) + SHIPPING[state.draft.shipping],
        payments=PAYMENTS,
    )
    return f"/checkout/placed/{state.place_order(buyer, sent['payment']).number}"


@login_first
async def placed(request: Request) -> Response:
    """Thanks for an order."""
    return render(request, "shop/order_placed.html", order=known_order(request))


def _total(state: ShopState) -> int:
    return sum(line.quantity * line.price for line in state.cart)


def _filled(state: ShopState) -> bool:
    if not state.cart:
        state.flash("Your cart is empty")
    return bool(state.cart)


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
