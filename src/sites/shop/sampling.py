"""What the shop's tasks may ask for.

Owns the draws of parameters: only what is in stock, only choices that differ from what the shop
proposes by itself (so that leaving one out is wrong), and only questions with one right answer.
"""

from __future__ import annotations

import random

from sites.shop.catalogue import Category, Product, mean_stars
from sites.shop.data import CITIES, DELIVERED, LABELS, PROCESSING, SHIPPING, STREETS, ShopData
from sites.shop.order_pages import ORDERS_PER_PAGE
from sites.shop.words import NEW_LABELS, RANKS, STARS
from sites.task_template import Parameters


def product(data: ShopData, rng: random.Random) -> str:
    """Draw a product in stock."""
    return rng.choice([p for p in data.products.values() if p.stock]).name


def plain_product(data: ShopData, rng: random.Random) -> str:
    """Draw a product in stock that has no sizes."""
    return rng.choice([p for p in data.products.values() if p.stock and not p.sizes]).name


def sized_product(data: ShopData, rng: random.Random) -> str:
    """Draw a product in stock that has sizes."""
    return rng.choice([p for p in data.products.values() if p.stock and p.sizes]).name


def other_product(data: ShopData, rng: random.Random, first: str) -> str:
    """Draw a product in stock other than the first."""
    while (second := product(data, rng)) == first:
        pass
    return second


def two_products(data: ShopData, rng: random.Random) -> Parameters:
    """Draw two products in stock."""
    first, second = rng.sample([product for product in data.products.values() if product.stock], 2)
    return {"first": first.name, "second": second.name}


def two_of_different_rating(data: ShopData, rng: random.Random) -> Parameters:
    """Draw two products in stock of one category, one better rated than the other."""
    while True:
        first, second = rng.sample(data.category(category(data, rng)).products, 2)
        if first.stock and second.stock and mean_stars(first.reviews) != mean_stars(second.reviews):
            return {"first": first.name, "second": second.name}


def two_numbers_of_stars(data: ShopData, rng: random.Random) -> Parameters:
    """Draw different stars for the reviews of two products."""
    first, second = rng.sample(STARS, 2)
    return {"first_stars": first, "second_stars": second}


def unwished(data: ShopData, rng: random.Random, email: str = "") -> str:
    """Draw a product in stock that is not on the wish list of this customer, or of the usual one."""
    customer = data.accounts[email] if email else data.usual
    while (name := product(data, rng)) in {wish.name for wish in customer.wishes}:
        pass
    return name


def wish(data: ShopData, rng: random.Random) -> str:
    """Draw a product on the wish list."""
    return rng.choice(data.usual.wishes).name


def colour(data: ShopData, rng: random.Random, product: str) -> str:
    """Draw a colour of the product other than the one that is chosen by default."""
    return rng.choice(data.product(product).colours[1:])


def size(data: ShopData, rng: random.Random, product: str) -> str:
    """Draw a size of the product other than the one that is chosen by default."""
    return rng.choice(data.product(product).sizes[1:])


def quantity(data: ShopData, rng: random.Random) -> int:
    """Draw a number of pieces other than one."""
    return rng.randint(2, 6)


def address(data: ShopData, rng: random.Random) -> str:
    """Draw the label of an address other than the default."""
    return rng.choice(LABELS[1:])


def shipping(data: ShopData, rng: random.Random) -> str:
    """Draw a shipping method other than the default."""
    return rng.choice(tuple(SHIPPING)[1:])


def own_address(data: ShopData, rng: random.Random) -> str:
    """Draw the label of any address of the customer."""
    return rng.choice(data.usual.addresses).label


def new_street(data: ShopData, rng: random.Random) -> str:
    """Draw a street and a number that no address has."""
    return f"{rng.randint(30, 60)} {rng.choice(STREETS)}"


def other_city(data: ShopData, rng: random.Random, label: str) -> str:
    """Draw a city other than that of the address with this label."""
    known = next(address for address in data.usual.addresses if address.label == label)
    return rng.choice([city for city in CITIES if city != known.city])


def new_address(data: ShopData, rng: random.Random) -> Parameters:
    """Draw the label, street, city and postcode of an address that the customer does not have yet."""
    return {
        "label": rng.choice(NEW_LABELS),
        "street": f"{rng.randint(2, 29)} {rng.choice(STREETS)}",
        "city": rng.choice(CITIES),
        "postcode": str(rng.randint(1000, 9999)),
    }


def email(data: ShopData, rng: random.Random) -> str:
    """Draw an email address that nobody has."""
    return f"{rng.choice(('mia', 'tom', 'ada', 'leo', 'zoe', 'sam'))}{rng.randint(10, 99)}@post.example"


def other_customer(data: ShopData, rng: random.Random) -> Parameters:
    """Draw email and password of a customer other than the usual one."""
    person = rng.choice([account for account in data.accounts.values() if account is not data.usual])
    return {"email": person.email, "password": person.password}


def category(data: ShopData, rng: random.Random) -> str:
    """Draw a category."""
    return rng.choice(tuple(data.categories.values())).name


def kind(data: ShopData, rng: random.Random, category: str) -> str:
    """Draw a kind of the category's products."""
    return rng.choice(data.category(category).kinds)


def ranked(data: ShopData, rng: random.Random) -> Parameters:
    """Draw category and rank such that one product in stock is meant."""
    return _ranked(data, rng, with_kind=False)


def ranked_kind(data: ShopData, rng: random.Random) -> Parameters:
    """Draw category, kind and rank such that one product in stock is meant, and another one without the kind."""
    return _ranked(data, rng, with_kind=True)


def meant(data: ShopData, category: str, rank: str, kind: str = "") -> Product:
    """Return the product that category, rank and kind mean."""
    return in_rank(data.category(category), rank, kind)[0]


def meant_colour(data: ShopData, rng: random.Random, category: str, rank: str, kind: str = "") -> str:
    """Draw a colour of the product that is meant."""
    return colour(data, rng, meant(data, category, rank, kind).name)


def in_rank(chosen: Category, rank: str, kind: str = "") -> list[Product]:
    """Return the category's products of ``kind`` ("" for all), the one that ``rank`` means first."""
    keys = {
        "cheapest": lambda p: p.price,
        "dearest": lambda p: -p.price,
        "best rated": lambda p: -mean_stars(p.reviews),
    }
    return sorted((p for p in chosen.products if kind in ("", p.kind)), key=keys[rank])


def first_in_one_order(data: ShopData, category: str, rank: str, kind: str = "") -> bool:
    """Whether the product that is meant comes first in no other order, so that the wrong order shows another one."""
    chosen = data.category(category)
    most_popular = next(product for product in chosen.products if kind in ("", product.kind))
    others = [in_rank(chosen, other, kind)[0] for other in RANKS if other != rank]
    return meant(data, category, rank, kind) not in (most_popular, *others)


def order(data: ShopData, rng: random.Random) -> int:
    """Draw a past order."""
    return rng.choice(data.usual.orders).number


def delivered_order(data: ShopData, rng: random.Random) -> int:
    """Draw a past order that was delivered."""
    return rng.choice([o.number for o in data.usual.orders if o.status == DELIVERED])


def open_order(data: ShopData, rng: random.Random) -> int:
    """Draw a past order that can still be cancelled."""
    return rng.choice([o.number for o in data.usual.orders if o.status == PROCESSING])


def order_page(data: ShopData, number: int) -> int:
    """Return the page (from 0) of the list of orders, newest first, on which an order stands."""
    newest_first = [order.number for order in reversed(data.usual.orders)]
    return newest_first.index(number) // ORDERS_PER_PAGE


def _ranked(data: ShopData, rng: random.Random, *, with_kind: bool) -> Parameters:
    while True:
        chosen = data.category(category(data, rng))
        kinds = {"kind": rng.choice(chosen.kinds)} if with_kind else {}
        rank = rng.choice(tuple(RANKS))
        best, *others = in_rank(chosen, rank, **kinds)
        tie = rank == "best rated" and others and mean_stars(others[0].reviews) == mean_stars(best.reviews)
        kind_matters = not kinds or in_rank(chosen, rank)[0] != best
        if best.stock and kind_matters and not tie:
            return {"category": chosen.name, **kinds, "rank": rank}
