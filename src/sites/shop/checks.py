"""What the shop's tasks are judged by, beside what all sites share (``sites.checks``).

Invariants: only canonical addresses; every judged page exists in a fresh session too, where it fails the check.
"""

from __future__ import annotations

from sites.checks import Check, Evaluation, PagesOf, Target, both, pages, shows

_SHOP = PagesOf("shop")
at, ends_at, equals, includes = _SHOP.at, _SHOP.ends_at, _SHOP.equals, _SHOP.includes


def product_path(name: str) -> str:
    """Return the path of the product of this name."""
    return f"/product/{name.lower().replace(' ', '-')}"


def cart_shows(*texts: str) -> Check:
    """The cart is open and says all of this."""
    return both(at("/cart"), shows(*texts))


def in_cart(variant: str, quantity: int = 1) -> Evaluation:
    """The cart holds this variant in this quantity, and nothing else."""
    return pages(includes("/cart", "#cart-lines", f"{variant}, "), equals("/cart", "#items", f"Items: {quantity}"))


def ordered(*lines: str, items: int = 1, address: str = "", shipping: str = "") -> tuple[Target, Target]:
    """The newest order has these lines and no more pieces, and goes where and how it should."""
    wanted = [*lines, *([f"Deliver to {address}"] if address else []), *([f"Shipping: {shipping}"] if shipping else [])]
    return includes("/orders/last", "#order", *wanted), equals("/orders/last", "#items", f"Items: {items}")


def cancelled(number: int, reason: str) -> tuple[Target, Target]:
    """This order is cancelled for this reason."""
    path = f"/orders/{number}"
    return equals(path, "#status", "Cancelled"), equals(path, "#reason", f"Reason: {reason}")


def in_address_book(label: str, line: str) -> Target:
    """The address of this label begins with this line."""
    return includes("/addresses", f'[data-label="{label}"]', f"{label}: {line}")


def wished(product: str) -> Target:
    """The product is on the wish list."""
    return includes("/wishlist", "#wish-list", product)


def subscribed(email: str, frequency: str) -> Target:
    """The newsletter goes to this address, this often."""
    return equals("/newsletter", "#subscription", f"Subscribed: {email}, {frequency}")


def messaged(subject: str, text: str) -> Target:
    """The newest message to the shop is this one."""
    return equals("/messages", ".message", f"{subject}: {text}")


def reviewed(product: str, stars: str, title: str, text: str, author: str) -> Target:
    """The newest review of the product is this one."""
    return includes(f"{product_path(product)}/reviews", ".review", f"{title}, {stars.split()[0]} stars, {author}", text)
