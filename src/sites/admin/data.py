"""The back office's base data: the shop's own orders, customers, products and reviews, and what is missing there.

Owns ``AdminData`` and its generation. Invariants: what the shop has is taken over unchanged (its statuses and
totals too); numbers of orders and invoices are unique; every customer's name is unique; nothing here is
changed after ``build``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import count, product

from sites.admin import words
from sites.admin.dates import DAYS, iso, of_shop_date
from sites.admin.records import Coupon, CreditMemo, Customer, Invoice, Order, Page, Product, Review, Shipment
from sites.shop.catalogue import Product as ShopProduct
from sites.shop.data import CANCELLED, CITIES, DELIVERED, PROCESSING, SHIPPED, SHIPPING, Line, ShopData
from sites.shop.data import build as build_shop

_FIRST_ORDER = 4001
_ORDERS = 80
_PENDING_REVIEWS = 54
_TERMS = 24
_EARLY = (DELIVERED, DELIVERED, DELIVERED, CANCELLED, words.REFUNDED)
_LATE = (words.PENDING, words.PENDING, words.PENDING, PROCESSING, PROCESSING, SHIPPED, words.ON_HOLD)


@dataclass(frozen=True, slots=True)
class Term:
    """What visitors searched the shop for, how many products that found, and how often."""

    words: str
    results: int
    uses: int


@dataclass(frozen=True)
class AdminData:
    """Everything that sessions share; orders have the oldest first."""

    orders: dict[int, Order]
    customers: dict[str, Customer]
    products: dict[str, Product]
    reviews: dict[int, Review]
    coupons: dict[str, Coupon]
    pages: dict[str, Page]
    terms: tuple[Term, ...]
    passwords: dict[str, str]
    """Passwords by user name."""

    def customer(self, name: str) -> Customer:
        """Return the customer of this name."""
        return next(customer for customer in self.customers.values() if customer.name == name)


def build(seed: int) -> AdminData:
    """Return the back office's base data for ``seed``."""
    rng, shop = random.Random(f"admin/{seed}"), build_shop(seed)
    customers = _customers(shop, rng)
    products = _products(shop)
    return AdminData(
        orders=_orders(shop, customers, rng),
        customers={customer.email: customer for customer in customers},
        products=products,
        reviews=_reviews(shop, customers, rng),
        coupons={coupon.code: coupon for coupon in _coupons(rng)},
        pages={page.slug: page for page in _pages(rng)},
        terms=_terms(products, rng),
        passwords={name: f"{name}-{rng.choice(('key', 'door', 'desk'))}-{rng.randint(10, 99)}" for name in words.STAFF},
    )


def slug_of(name: str) -> str:
    """Return the address of a record of this name."""
    return name.lower().replace(" ", "-")


def _customers(shop: ShopData, rng: random.Random) -> list[Customer]:
    known = [(account.name, account.email, account.addresses[0].city) for account in shop.accounts.values()]
    names = [f"{first} {last}" for first, last in product(words.FIRST_NAMES, words.LAST_NAMES)]
    more = [(name, f"{slug_of(name)}@post.example", rng.choice(CITIES)) for name in rng.sample(names, 24)]
    numbers = iter(rng.sample(range(1000, 10000), len(known) + len(more)))
    return [
        Customer(email, name, rng.choice(words.GROUPS), f"555-{next(numbers)}" if rng.random() < 0.7 else "", city)
        for name, email, city in (*known, *more)
    ]


def _orders(shop: ShopData, customers: list[Customer], rng: random.Random) -> dict[int, Order]:
    goods = [item for item in shop.products.values() if item.stock]
    found = [
        Order(
            past.number,
            of_shop_date(past.date),
            account.email,
            account.name,
            past.status,
            past.lines,
            past.address.city,
            past.shipping,
        )  # fmt: skip
        for account in shop.accounts.values()
        for past in account.orders
    ]
    found += [_order(i, rng.choice(customers[len(shop.accounts) :]), goods, rng) for i in range(_ORDERS)]
    found.sort(key=lambda order: (order.date, order.number))
    invoices, shipments, memos = count(7001), count(8001), count(9001)
    for index, order in enumerate(found):
        sent = order.status in (SHIPPED, DELIVERED, words.REFUNDED)
        paid = sent or (order.status == PROCESSING and rng.random() < 0.5)
        found[index] = replace(
            order,
            invoice=Invoice(next(invoices), order.date) if paid else None,
            shipment=Shipment(next(shipments), rng.choice(words.CARRIERS), _tracking(rng)) if sent else None,
            memo=CreditMemo(next(memos), rng.choice(words.REFUND_REASONS), order.total)
            if order.status == words.REFUNDED
            else None,
        )
    return {order.number: order for order in found}


def _order(index: int, customer: Customer, goods: list[ShopProduct], rng: random.Random) -> Order:
    chosen = rng.sample(goods, rng.choice((1, 1, 2)))
    return Order(
        number=_FIRST_ORDER + index,
        date=iso(index * (DAYS - 1) // (_ORDERS - 1)),
        email=customer.email,
        customer=customer.name,
        status=rng.choice(_EARLY if index < _ORDERS // 2 else _LATE),
        lines=tuple(
            Line(item, rng.choice(item.colours), rng.choice(item.sizes) if item.sizes else "", rng.randint(1, 3))
            for item in chosen
        ),
        city=customer.city,
        shipping=rng.choice(tuple(SHIPPING)),
    )


def _tracking(rng: random.Random) -> str:
    return f"{rng.choice('ABCDE')}{rng.choice('KLMNP')}{rng.randint(10000, 99999)}"


def _products(shop: ShopData) -> dict[str, Product]:
    found: dict[str, Product] = {}
    for category in shop.categories.values():
        for n, item in enumerate(sorted(category.products, key=lambda p: p.name), start=1):
            sku = f"{category.name[:2].upper()}-{n:02}"
            found[item.slug] = Product(
                item.slug, item.name, sku, category.name, item.price, item.stock, words.PRODUCT_STATUSES[0]
            )
    return found


def _reviews(shop: ShopData, customers: list[Customer], rng: random.Random) -> dict[int, Review]:
    """The pending ones are the newest and by customers, two to four each for the first of them."""
    numbers, names = count(1), [item.name for item in shop.products.values()]
    waiting, approved = words.REVIEW_STATUSES[:2]
    reviews = [
        Review(next(numbers), item.name, review.author, review.stars, review.title, review.text, approved)
        for item in shop.products.values()
        for review in item.reviews
    ]
    authors = [customer.name for customer in customers[:18]]
    order = [author for author in authors for _ in range(2)]
    order += rng.sample(authors, _PENDING_REVIEWS - len(order))
    rng.shuffle(order)
    for author in order:
        reviews.append(
            Review(
                next(numbers),
                rng.choice(names),
                author,
                rng.randint(1, 5),
                rng.choice(words.REVIEW_TITLES),
                rng.choice(words.REVIEW_TEXTS),
                waiting,
            )  # fmt: skip
        )
    return {review.number: review for review in reviews}


def _coupons(rng: random.Random) -> list[Coupon]:
    found = []
    for season in words.SEASONS:
        sale, percent, start = rng.choice(words.SALES), 5 * rng.randint(1, 8), rng.randrange(DAYS - 20)
        group = rng.choice(words.GROUPS)
        found.append(
            Coupon(f"{season.upper()}{percent}", f"{season} {sale}", percent, group, iso(start), iso(start + 20))
        )
    return found


def _pages(rng: random.Random) -> list[Page]:
    texts = rng.choices(words.PAGE_TEXTS, k=len(words.PAGES))
    enabled, disabled = words.PRODUCT_STATUSES
    return [
        Page(slug_of(title), title, text, disabled if rng.random() < 0.2 else enabled)
        for title, text in zip(words.PAGES, texts, strict=True)
    ]


def _terms(products: dict[str, Product], rng: random.Random) -> tuple[Term, ...]:
    """Two words of products' names each; those that no product has together found nothing."""
    first = sorted({name for item in products.values() for name in item.name.split()[:2]})
    nouns = sorted({item.name.split()[2] for item in products.values()})
    phrases = rng.sample([f"{one.lower()} {noun.lower()}" for one in first for noun in nouns], _TERMS)
    names = [item.name.lower().split() for item in products.values()]
    uses = rng.sample(range(20, 400), _TERMS)
    found = [Term(p, sum(set(p.split()) <= set(name) for name in names), n) for p, n in zip(phrases, uses, strict=True)]
    return tuple(sorted(found, key=lambda term: -term.uses))
