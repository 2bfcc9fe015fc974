"""What the shop's tasks are judged by, beside what all sites share (``sites.checks``).

Invariants: only canonical addresses; every judged page exists in a fresh session too, where it fails the check.
"""

from __future__ import annotations

from sites.checks import Evaluation, PagesOf, Target, pages

_SHOP = PagesOf("shop")
at, ends_at, equals, includes = _SHOP.at, _SHOP.ends_at, _SHOP.equals, _SHOP.includes


def in_cart(variant: str, quantity: int = 1) -> Evaluation:
    """The cart holds this variant in this quantity, and nothing else."""
    return pages(includes("/cart", "#cart-lines", f"{variant}, "), equals("/cart", "#items", f"Items: {quantity}"))


def ordered(*lines: str, items: int, address: str = "", shipping: str = "") -> Evaluation:
    """The newest order has these lines and no more pieces, and goes where and how it should."""
    return pages(*newest_order(*lines, items=items, address=address, shipping=shipping))


def newest_order(*lines: str, items: int, address: str = "", shipping: str = "") -> tuple[Target, Target]:
    """Targets of ``pages`` that ``ordered`` consists of."""
    wanted = [*lines, *([f"Deliver to {address}"] if address else []), *([f"Shipping: {shipping}"] if shipping else [])]
    return includes("/orders/last", "#order", *wanted), equals("/orders/last", "#items", f"Items: {items}")
