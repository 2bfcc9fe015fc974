"""Who may see a page of the shop, and the things that its path names.

Owns the way from a request to the shop's state, the detour through the log-in page, and the 404s.
"""

from __future__ import annotations

from functools import wraps
from typing import cast
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sites.access import existing
from sites.forms import Handler
from sites.rendering import see_other
from sites.shop.catalogue import Product
from sites.shop.data import Order
from sites.shop.state import Customer, ShopState


def shop(request: Request) -> ShopState:
    """Return the state of the session that this request belongs to."""
    return cast(ShopState, request.state.session)


def customer(request: Request) -> Customer:
    """Return who is logged in; for handlers behind ``login_first``."""
    found = shop(request).customer
    if found is None:
        raise HTTPException(403)
    return found


def known_product(request: Request) -> Product:
    """Return the product that the path names, or raise 404."""
    return existing(shop(request).data.products.get(request.path_params["slug"]))


def known_order(request: Request) -> Order:
    """Return the customer's order that the path names, or raise 404."""
    number = request.path_params["number"]
    return existing(next((order for order in customer(request).orders if order.number == number), None))


def login_first(handler: Handler) -> Handler:
    """Send visitors who are not logged in to the log-in page, and back afterwards."""

    @wraps(handler)
    async def guarded(request: Request) -> Response:
        if shop(request).customer is not None:
            return await handler(request)
        shop(request).flash("Log in first")
        came_from = request.url.path if request.method == "GET" else "/"
        return see_other(f"/login?{urlencode({'next': came_from})}")

    return guarded
