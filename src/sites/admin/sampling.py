"""What the back office's tasks may ask for.

Owns the draws of parameters. Invariants: values differ from what is there and from what forms propose, so that
leaving one out is wrong; dates of new coupons exist in every calendar.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from sites.admin import words
from sites.admin.data import AdminData, slug_of
from sites.admin.dates import DAYS, iso
from sites.admin.grid import ROWS
from sites.admin.order_pages import STATUSES
from sites.admin.records import Order, Review
from sites.admin.review_pages import DECISIONS, DELETE
from sites.admin.state import OPEN
from sites.shop.catalogue import MATERIALS, NOUNS
from sites.shop.data import CANCELLED, CITIES, MONTHS
from sites.task_template import Parameters

BULK = {"Hold": words.ON_HOLD, "Cancel": CANCELLED}
"""What tasks do to several orders at once, and the status it leads to."""
REVIEW_ACTIONS = (*DECISIONS, DELETE)
BULK_PAGES = 3
"""Such orders stand on one of so many first pages of their table."""
_MARCH = DAYS + 30


def order(data: AdminData, rng: random.Random) -> int:
    """Draw an order."""
    return rng.choice(list(data.orders))


def open_order(data: AdminData, rng: random.Random) -> int:
    """Draw an order that can be held, cancelled and shipped."""
    return _fitting(data, rng, lambda found: found.status in OPEN)


def unpaid_order(data: AdminData, rng: random.Random) -> int:
    """Draw an order that can be invoiced and shipped."""
    return _fitting(data, rng, lambda found: found.status in OPEN and found.invoice is None)


def refund(data: AdminData, rng: random.Random) -> Parameters:
    """Draw an order that can be refunded, the reason (never the one proposed), and a part of its total."""
    number = _fitting(data, rng, lambda found: found.invoice is not None and found.memo is None)
    reason = rng.choice(words.REFUND_REASONS[1:])
    return {"number": number, "reason": reason, "amount": rng.randint(5, data.orders[number].total - 1)}


def tracking(data: AdminData, rng: random.Random) -> str:
    """Draw a tracking number that no parcel has yet."""
    return f"{rng.choice('STVW')}{rng.choice('XYZ')}{rng.randint(10000, 99999)}"


def to_ship(data: AdminData, rng: random.Random) -> Parameters:
    """Draw how an order is to be shipped: never with the carrier that is proposed."""
    return {"carrier": rng.choice(words.CARRIERS[1:]), "tracking": tracking(data, rng)}


def three_parcels(data: AdminData, rng: random.Random) -> Parameters:
    """Draw three orders that can be shipped, their carrier, and their tracking numbers."""
    ordinals = ("first", "second", "third")
    fit = [order.number for order in data.orders.values() if order.status in OPEN]
    numbers = dict(zip(ordinals, rng.sample(fit, 3), strict=True))
    codes = {f"{name}_tracking": tracking(data, rng) for name in ordinals}
    return {**numbers, "carrier": to_ship(data, rng)["carrier"], **codes}


def three_pending(data: AdminData, rng: random.Random) -> Parameters:
    """Draw three orders that stand together on one of the first pages of those that wait, and what is done to them."""
    numbers = pending(data)
    shown = [numbers[page * ROWS : (page + 1) * ROWS] for page in range(BULK_PAGES)]
    first, second, third = sorted(rng.sample(rng.choice([page for page in shown if len(page) >= 3]), 3))
    return {"action": rng.choice(list(BULK)), "first": first, "second": second, "third": third}


def pending(data: AdminData) -> list[int]:
    """Return the numbers of the orders that wait, as the table of orders shows them."""
    found = [order for order in data.orders.values() if order.status == words.PENDING]
    return [order.number for order in sorted(found, key=lambda order: (order.date, order.number), reverse=True)]


def status_and_month(data: AdminData, rng: random.Random) -> Parameters:
    """Draw a month and a status of orders."""
    month = rng.choice(MONTHS)
    return {"status": rng.choice(STATUSES), "month": month}


def user(data: AdminData, rng: random.Random) -> Parameters:
    """Draw user name and password of somebody who may log in."""
    user = rng.choice(words.STAFF)
    return {"user": user, "password": data.passwords[user]}


def product(data: AdminData, rng: random.Random) -> str:
    """Draw a product."""
    return rng.choice(list(data.products.values())).name


def price_and_stock(data: AdminData, rng: random.Random, product: str) -> Parameters:
    """Draw a price and a stock other than the product's."""
    item = data.products[slug_of(product)]
    price = rng.choice([n for n in range(10, 100) if n != item.price])
    return {"price": price, "stock": rng.choice([n for n in range(70, 100) if n != item.stock])}


def price(data: AdminData, rng: random.Random, product: str) -> int:
    """Draw a price other than the product's."""
    found: int = price_and_stock(data, rng, product)["price"]
    return found


def two_products(data: AdminData, rng: random.Random) -> Parameters:
    """Draw two products, and a price and a stock other than its own for each."""
    first, second = (item.name for item in rng.sample(list(data.products.values()), 2))
    mine, other = price_and_stock(data, rng, first), price_and_stock(data, rng, second)
    return {"first": first, **mine, "second": second, **{f"other_{name}": value for name, value in other.items()}}


def new_product(data: AdminData, rng: random.Random) -> Parameters:
    """Draw a product that the shop does not have; its category is not the one proposed."""
    noun = rng.choice([noun for noun in NOUNS if f"{noun}s" != min(p.category for p in data.products.values())])
    return {
        "product": f"{rng.choice(words.NEW_STYLES)} {rng.choice(MATERIALS)} {noun}",
        "sku": f"{noun[:2].upper()}-{rng.randint(50, 99)}",
        "category": f"{noun}s",
        "price": rng.randint(10, 99),
        "stock": rng.randint(10, 99),
    }


def coupon(data: AdminData, rng: random.Random) -> str:
    """Draw the code of a coupon."""
    return rng.choice(list(data.coupons))


def new_coupon(data: AdminData, rng: random.Random) -> Parameters:
    """Draw a coupon that the shop does not have; its group is not the one proposed."""
    season, percent = rng.choice(words.NEW_SEASONS), rng.randint(5, 60)
    # From March on; no day after the 28th, which not every month has.
    start = _MARCH + 30 * rng.randrange(3) + rng.randrange(28)
    return {
        "name": f"{season} {rng.choice(words.SALES)}",
        "code": f"{season.upper()}{percent}",
        "percent": percent,
        "group": rng.choice(words.GROUPS[1:]),
        "start": iso(start),
        "end": iso(start + 30),
    }


def customer(data: AdminData, rng: random.Random) -> str:
    """Draw the name of a customer."""
    return rng.choice(list(data.customers.values())).name


def new_customer(data: AdminData, rng: random.Random) -> Parameters:
    """Draw a customer whom the shop does not have; the group is not the one proposed."""
    name = f"{rng.choice(words.NEW_FIRST_NAMES)} {rng.choice(words.LAST_NAMES)}"
    return {
        "name": name,
        "email": f"{slug_of(name)}{rng.randint(10, 99)}@post.example",
        "group": rng.choice(words.GROUPS[1:]),
        "phone": f"555-{rng.randint(1000, 9999)}",
        "city": rng.choice(CITIES),
    }


def other_group(data: AdminData, rng: random.Random, name: str) -> str:
    """Draw a group that the customer is not in."""
    return rng.choice([group for group in words.GROUPS if group != data.customer(name).group])


def page(data: AdminData, rng: random.Random) -> str:
    """Draw the title of a content page."""
    return rng.choice(list(data.pages.values())).title


def other_text(data: AdminData, rng: random.Random, page: str) -> str:
    """Draw a text that the content page does not have."""
    return rng.choice([text for text in words.PAGE_TEXTS if text != data.pages[slug_of(page)].text])


def term(data: AdminData, rng: random.Random) -> str:
    """Draw what somebody searched for."""
    return rng.choice(data.terms).words


def period(data: AdminData, rng: random.Random) -> Parameters:
    """Draw the first and the last day of 15 to 60 days among the past orders."""
    length = rng.randint(15, 60)
    start = rng.randrange(DAYS - length)
    return {"start": iso(start), "end": iso(start + length)}


def author(data: AdminData, rng: random.Random) -> str:
    """Draw an author of reviews that wait."""
    return rng.sample(_authors(data), 1)[0]


def two_decisions(data: AdminData, rng: random.Random) -> Parameters:
    """Draw two authors of reviews that wait, and different decisions on them."""
    first, second = rng.sample(_authors(data), 2)
    action, other = rng.sample(REVIEW_ACTIONS, 2)
    return {"action": action, "first": first, "other": other, "second": second}


def waiting(data: AdminData, author: str) -> list[Review]:
    """Return an author's reviews that wait for a decision."""
    return [r for r in data.reviews.values() if r.author == author and r.status == words.REVIEW_STATUSES[0]]


def _authors(data: AdminData) -> list[str]:
    return sorted({r.author for r in data.reviews.values() if r.status == words.REVIEW_STATUSES[0]})


def _fitting(data: AdminData, rng: random.Random, fits: Callable[[Order], bool]) -> int:
    return rng.choice([found.number for found in data.orders.values() if fits(found)])
