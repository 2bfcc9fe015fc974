"""What the shop's tasks may ask for.

Owns the choice of parameters: only what is in stock, only choices that differ from what the shop
proposes by itself (so that leaving one out is wrong), and only questions with one right answer.
"""

from __future__ import annotations

import random

from sites.shop.catalogue import Category, Product, mean_stars
from sites.shop.data import CITIES, LABELS, SHIPPING, STREETS, Order, ShopData
from sites.shop.order_pages import ORDERS_PER_PAGE
from sites.task_template import Parameters

RANKS = {
    "cheapest": ("Lowest price", "low"),
    "dearest": ("Highest price", "high"),
    "best rated": ("Best rated", "rated"),
}
"""How instructions ask for an extreme: the sort order's label and its value in the address."""
NEW_LABELS = ("Beach", "Garage", "School", "Club", "Barn", "Office")


def product(data: ShopData, rng: random.Random, *, sized: bool | None = None) -> Product:
    """Return a product in stock; with or without sizes where that matters."""
    fit = [p for p in data.products.values() if p.stock and sized in (None, bool(p.sizes))]
    return rng.choice(fit)


def colour(item: Product, rng: random.Random) -> str:
    """Return a colour other than the one that is chosen by default."""
    return rng.choice(item.colours[1:])


def size(item: Product, rng: random.Random) -> str:
    """Return a size other than the one that is chosen by default."""
    return rng.choice(item.sizes[1:])


def quantity(rng: random.Random) -> int:
    """Return a number of pieces other than one."""
    return rng.randint(2, 6)


def address(rng: random.Random) -> str:
    """Return the label of an address other than the default."""
    return rng.choice(LABELS[1:])


def shipping(rng: random.Random) -> str:
    """Return a shipping method other than the default."""
    return rng.choice(tuple(SHIPPING)[1:])


def new_address(rng: random.Random) -> Parameters:
    """Return the fields of an address that the customer does not have yet."""
    return {
        "label": rng.choice(NEW_LABELS),
        "street": f"{rng.randint(2, 29)} {rng.choice(STREETS)}",
        "city": rng.choice(CITIES),
        "postcode": str(rng.randint(1000, 9999)),
    }


def category(data: ShopData, rng: random.Random) -> Category:
    """Return any category."""
    return rng.choice(tuple(data.categories.values()))


def ranked(data: ShopData, rng: random.Random, *, with_kind: bool = False) -> Parameters:
    """Return category, kind ("" unless asked for) and rank such that one product in stock is meant.

    A kind always matters: the category's extreme is of another kind.
    """
    while True:
        chosen = category(data, rng)
        kind = rng.choice(chosen.kinds) if with_kind else ""
        rank = rng.choice(tuple(RANKS))
        best, *others = in_rank(chosen, kind, rank)
        tie = rank == "best rated" and others and mean_stars(others[0].reviews) == mean_stars(best.reviews)
        kind_matters = not kind or in_rank(chosen, "", rank)[0] != best
        if best.stock and kind_matters and not tie:
            return {"category": chosen.name, "kind": kind, "rank": rank}


def in_rank(chosen: Category, kind: str, rank: str) -> list[Product]:
    """Return the category's products of ``kind`` ("" for all), the one that ``rank`` means first."""
    keys = {
        "cheapest": lambda p: p.price,
        "dearest": lambda p: -p.price,
        "best rated": lambda p: -mean_stars(p.reviews),
    }
    return sorted((p for p in chosen.products if kind in ("", p.kind)), key=keys[rank])


def meant(data: ShopData, parameters: Parameters) -> Product:
    """Return the product that category, kind and rank mean."""
    chosen = data.categories[parameters["category"].lower()]
    return in_rank(chosen, parameters.get("kind", ""), parameters["rank"])[0]


def order(data: ShopData, rng: random.Random, status: str | None = None) -> Order:
    """Return a past order (of this status), one whose goods can still be bought."""
    return rng.choice([o for o in data.usual.orders if status in (None, o.status)])


def find_order(data: ShopData, number: int) -> Order:
    """Return the usual customer's past order of this number."""
    return next(order for order in data.usual.orders if order.number == number)


def order_page(data: ShopData, number: int) -> int:
    """Return the page (from 0) of the list of orders, newest first, on which an order stands."""
    newest_first = [order.number for order in reversed(data.usual.orders)]
    return newest_first.index(number) // ORDERS_PER_PAGE
