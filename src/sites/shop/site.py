"""The shop as a ``Site``: its pages, data, state and tasks put together."""

from __future__ import annotations

from sites.shop import account_pages, cart_pages, catalogue_pages, finder_pages, order_pages
from sites.shop.data import ShopData, build
from sites.shop.state import ShopState
from sites.shop.tasks import TEMPLATES
from sites.site import Site


def new_state(data: ShopData, login: bool) -> ShopState:
    """Return a fresh session of the shop, logged in as the usual customer when ``login``."""
    return ShopState(data, data.usual if login else None)


SHOP = Site(
    name="shop",
    routes=(
        *catalogue_pages.ROUTES,
        *cart_pages.ROUTES,
        *order_pages.ROUTES,
        *account_pages.ROUTES,
        *finder_pages.ROUTES,
    ),
    build=build,
    new_state=new_state,
    templates=TEMPLATES,
    account=lambda data: (data.usual.email, data.usual.password),
)
"""The shop: catalogue, cart, checkout, orders, addresses, wish list and reviews."""
