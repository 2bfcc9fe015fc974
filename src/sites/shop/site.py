"""The shop as a ``Site``: its pages, data, state and tasks put together."""

from __future__ import annotations

from sites.shop import account_pages, cart_pages, catalogue_pages, finder_pages, order_pages
from sites.shop.data import build
from sites.shop.state import ShopState
from sites.shop.tasks import TEMPLATES
from sites.site import Site, routes_of

SHOP = Site(
    name="shop",
    routes=routes_of(catalogue_pages, cart_pages, order_pages, account_pages, finder_pages),
    build=build,
    new_state=lambda data, login: ShopState(data, data.usual if login else None),
    templates=TEMPLATES,
    account=lambda data: (data.usual.email, data.usual.password),
)
"""The shop: catalogue, cart, checkout, orders, addresses, wish list and reviews."""
