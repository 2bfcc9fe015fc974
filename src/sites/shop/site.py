"""The shop as a ``Site``."""

from __future__ import annotations

from sites.site import Site, State

SHOP = Site(name="shop", routes=(), build=lambda seed: None, new_state=lambda data, login: State())
"""The shop: catalogue, cart, checkout, orders, addresses, wish list and reviews."""
