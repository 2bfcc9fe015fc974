"""What the back office's tasks may ask for.

Owns the choice of parameters. Invariants: values differ from what is there and from what forms propose, so
that leaving one out is wrong; questions have one right answer; dates of new coupons exist in every calendar.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from sites.admin import words
from sites.admin.data import AdminData, slug_of
from sites.admin.dates import DAYS, iso
from sites.admin.grid import ROWS
from sites.admin.records import Coupon, Order, Product, Review
from sites.old_form import Parameters
from sites.shop.catalogue import MATERIALS, NOUNS
from sites.shop.data import CITIES, PROCESSING

OPEN = (words.PENDING, PROCESSING)
"""Statuses of orders that can be held, cancelled, invoiced and shipped."""
_NEW_STYLES = ("Modern", "Simple", "Classic", "Fancy", "Light", "Heavy")
_NEW_FIRST = ("Nora", "Otto", "Pia", "Rick", "Tess", "Uma", "Vera", "Will")
_NEW_SEASONS = ("Holiday", "Garden", "Family", "Friends", "Weekend", "Birthday")
_MARCH = DAYS + 30


def order(data: AdminData, rng: random.Random, fits: Callable[[Order], bool] = lambda order: True) -> Order:
    """Return an order that fits."""
    return rng.choice([found for found in data.orders.values() if fits(found)])


def open_order(data: AdminData, rng: random.Random) -> Order:
    """Return an order that can be held, cancelled and shipped."""
    return order(data, rng, lambda found: found.status in OPEN)


def to_ship(data: AdminData, rng: random.Random) -> Parameters:
    """Return how an order is to be shipped: never with the carrier that is proposed."""
    return {"carrier": rng.choice(words.CARRIERS[1:]), "tracking": tracking(rng)}


def tracking(rng: random.Random) -> str:
    """Return a tracking number that no parcel has yet."""
    return f"{rng.choice('STVW')}{rng.choice('XYZ')}{rng.randint(10000, 99999)}"


def product(data: AdminData, rng: random.Random) -> Product:
    """Return any product."""
    return rng.choice(list(data.products.values()))


def price_and_stock(item: Product, rng: random.Random) -> tuple[int, int]:
    """Return a price and a stock other than the product's."""
    price = rng.choice([n for n in range(10, 100) if n != item.price])
    return price, rng.choice([n for n in range(70, 100) if n != item.stock])


def new_product(data: AdminData, rng: random.Random) -> Parameters:
    """Return the fields of a product that the shop does not have; its category is not the one proposed."""
    noun = rng.choice([noun for noun in NOUNS if f"{noun}s" != min(p.category for p in data.products.values())])
    name = f"{rng.choice(_NEW_STYLES)} {rng.choice(MATERIALS)} {noun}"
    sku = f"{noun[:2].upper()}-{rng.randint(50, 99)}"
    return {
        "product": name, "sku": sku, "category": f"{noun}s", "price": rng.randint(10, 99), "stock": rng.randint(10, 99),
    }  # fmt: skip


def product_of(p: Parameters) -> Product:
    """Return the product that ``new_product`` describes."""
    fields = (p["product"], p["sku"], p["category"], p["price"], p["stock"])
    return Product(slug_of(p["product"]), *fields, words.PRODUCT_STATUSES[0])


def new_coupon(rng: random.Random) -> Parameters:
    """Return the fields of a coupon that the shop does not have; its group is not the one proposed."""
    season, percent = rng.choice(_NEW_SEASONS), rng.randint(5, 60)
    # From March on; no day after the 28th, which not every month has.
    start = _MARCH + 30 * rng.randrange(3) + rng.randrange(28)
    return {
        "name": f"{season} {rng.choice(words.SALES)}", "code": f"{season.upper()}{percent}", "percent": percent,
        "group": rng.choice(words.GROUPS[1:]), "start": iso(start), "end": iso(start + 30),
    }  # fmt: skip


def coupon_of(p: Parameters) -> Coupon:
    """Return the coupon that ``new_coupon`` describes."""
    return Coupon(p["code"], p["name"], p["percent"], p["group"], p["start"], p["end"])


def new_customer(data: AdminData, rng: random.Random) -> Parameters:
    """Return the fields of a customer whom the shop does not have."""
    name = f"{rng.choice(_NEW_FIRST)} {rng.choice(words.LAST_NAMES)}"
    email = f"{slug_of(name)}{rng.randint(10, 99)}@post.example"
    return {
        "name": name, "email": email, "group": rng.choice(words.GROUPS[1:]),
        "phone": f"555-{rng.randint(1000, 9999)}", "city": rng.choice(CITIES),
    }  # fmt: skip


def new_group(data: AdminData, rng: random.Random) -> Parameters:
    """Return a customer and a group that the customer is not in."""
    customer = rng.choice(list(data.customers.values()))
    return {"name": customer.name, "group": rng.choice([g for g in words.GROUPS if g != customer.group])}


def new_text(data: AdminData, rng: random.Random) -> Parameters:
    """Return a content page and a text that it does not have."""
    page = rng.choice(list(data.pages.values()))
    return {"page": page.title, "text": rng.choice([text for text in words.PAGE_TEXTS if text != page.text])}


def waiting(data: AdminData, author: str) -> list[Review]:
    """Return an author's reviews that wait for a decision."""
    return [r for r in data.reviews.values() if r.author == author and r.status == words.REVIEW_STATUSES[0]]


def authors(data: AdminData, rng: random.Random, count: int) -> list[str]:
    """Return the names of so many authors of waiting reviews."""
    return rng.sample(sorted({r.author for r in data.reviews.values() if r.status == words.REVIEW_STATUSES[0]}), count)


def newest_first(data: AdminData, status: str) -> list[Order]:
    """Return the orders of a status as the table of orders shows them."""
    found = [o for o in data.orders.values() if o.status == status]
    return sorted(found, key=lambda o: (o.date, o.number), reverse=True)


def same_page(data: AdminData, rng: random.Random, status: str, count: int, pages: int) -> list[int]:
    """Return numbers of so many orders that stand together on one of the first pages of this status."""
    numbers = [o.number for o in newest_first(data, status)]
    shown = [numbers[page * ROWS : (page + 1) * ROWS] for page in range(pages)]
    return sorted(rng.sample(rng.choice([page for page in shown if len(page) >= count]), count))


def page_of(data: AdminData, status: str, number: int) -> int:
    """Return the page (from 0) on which an order stands among those of this status."""
    return [o.number for o in newest_first(data, status)].index(number) // ROWS
