"""The shop's base data: catalogue, customers and their past orders, built once per seed.

Owns the records that all sessions share; nothing here is ever changed (see ``sites.shop.state``).
Invariants: the newest past order of every customer went to the default address by the default
shipping, and no task asks for either, so that an old order never passes for a new one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from sites.shop.catalogue import Category, Product, build_categories

SHIPPING = {"Standard": 3, "Express": 9, "Next day": 15, "Pickup": 1}
"""Shipping methods and their price in dollars; the first is chosen unless the customer chooses."""
PAYMENTS = ("Card", "Invoice")
REASONS = ("Changed my mind", "Found it cheaper", "Ordered twice", "Too slow", "Wrong colour")
FREQUENCIES = ("Daily", "Weekly", "Monthly")
SUBJECTS = ("Returns", "Delivery", "Payment", "Other")
CITIES = ("Leeds", "Bath", "York", "Derby", "Dover", "Ripon")
STREETS = ("Elm Road", "Hill Street", "Mill Lane", "Park Road", "Lake Street", "Oak Lane")
LABELS = ("Home", "Work", "Studio", "Cabin", "Parents")
"""Labels of the usual customer's addresses; the first is the default."""
MONTHS = ("August", "September", "October", "November", "December", "January")
"""Months of the past orders; the shop's months have 30 days."""
PROCESSING, SHIPPED, DELIVERED, CANCELLED = "Processing", "Shipped", "Delivered", "Cancelled"


@dataclass(frozen=True, slots=True)
class Address:
    """A delivery address; ``label`` names it for its owner."""

    label: str
    street: str
    city: str
    postcode: str

    def line(self) -> str:
        """Return street, city and postcode on one line."""
        return f"{self.street}, {self.city}, {self.postcode}"


@dataclass(frozen=True, slots=True)
class Line:
    """A number of pieces of one variant of a product."""

    product: Product
    colour: str
    size: str
    quantity: int

    @property
    def price(self) -> int:
        """Price of one piece, dollars."""
        return self.product.price_of(self.size)

    def describe(self) -> str:
        """Return the text under which carts and orders show the variant."""
        return ", ".join(part for part in (self.product.name, self.colour, self.size) if part)


@dataclass(frozen=True, slots=True)
class Order:
    """A placed order; ``reason`` says why it was cancelled."""

    number: int
    date: str
    status: str
    lines: tuple[Line, ...]
    address: Address
    shipping: str
    payment: str
    reason: str = ""

    @property
    def items(self) -> int:
        """Number of pieces."""
        return sum(line.quantity for line in self.lines)

    def described(self) -> list[str]:
        """Return the lines as orders show them."""
        return [f"{line.quantity} x {line.describe()}" for line in self.lines]

    @property
    def total(self) -> int:
        """Goods and shipping, dollars."""
        return sum(line.price * line.quantity for line in self.lines) + SHIPPING[self.shipping]


@dataclass(frozen=True, slots=True)
class Account:
    """A customer with a past; the password guards nothing but the log-in task."""

    name: str
    email: str
    password: str
    addresses: tuple[Address, ...]
    orders: tuple[Order, ...]
    wishes: tuple[Product, ...]


@dataclass(frozen=True)
class ShopData:
    """Everything that sessions share."""

    categories: dict[str, Category]
    products: dict[str, Product]
    accounts: dict[str, Account]
    usual: Account
    """The customer whom tasks that need a log-in act for."""

    def product(self, name: str) -> Product:
        """Return the product of this name."""
        return self.products[name.lower().replace(" ", "-")]

    def category(self, name: str) -> Category:
        """Return the category of this name."""
        return self.categories[name.lower()]

    def order(self, number: int) -> Order:
        """Return the usual customer's past order of this number."""
        return next(order for order in self.usual.orders if order.number == number)


def build(seed: int) -> ShopData:
    """Return the shop's base data for ``seed``."""
    rng = random.Random(f"shop/{seed}")
    categories = {category.slug: category for category in build_categories(rng)}
    products = {product.slug: product for category in categories.values() for product in category.products}
    goods = [product for product in products.values() if product.stock]
    usual = _account("Mia Hill", LABELS, 24, goods, rng, first_order=1001)
    people = [usual]
    for n, name in enumerate(("Tom Reed", "Ada Fox", "Leo Park", "Zoe Lane", "Sam Frost")):
        people.append(_account(name, LABELS[:2], 3, goods, rng, first_order=2001 + 10 * n))
    return ShopData(categories, products, {person.email: person for person in people}, usual)


def _account(
    name: str, labels: tuple[str, ...], orders: int, goods: list[Product], rng: random.Random, *, first_order: int
) -> Account:
    first = name.split()[0].lower()
    addresses = tuple(
        Address(label, f"{rng.randint(2, 29)} {rng.choice(STREETS)}", rng.choice(CITIES), str(rng.randint(1000, 9999)))
        for label in labels
    )
    past = tuple(_order(first_order + i, i / orders, addresses, goods, rng) for i in range(orders - 1))
    newest = _order(first_order + orders - 1, 1.0, addresses[:1], goods, rng, shipping=next(iter(SHIPPING)))
    return Account(
        name=name,
        email=f"{first}@post.example",
        password=f"{first}-{rng.choice(('oak', 'fox', 'sun', 'sea'))}-{rng.randint(10, 99)}",
        addresses=addresses,
        orders=(*past, newest),
        wishes=tuple(rng.sample(goods, 6)),
    )


def _order(
    number: int,
    age: float,
    addresses: tuple[Address, ...],
    goods: list[Product],
    rng: random.Random,
    shipping: str = "",
) -> Order:
    """Return a past order; ``age`` runs from 0 (oldest, delivered) to 1 (newest, being processed)."""
    chosen = rng.sample(goods, rng.choice((1, 1, 2)))
    lines = tuple(
        Line(p, rng.choice(p.colours), rng.choice(p.sizes) if p.sizes else "", rng.randint(1, 3)) for p in chosen
    )
    day = int(age * (30 * len(MONTHS) - 1))
    late = (PROCESSING, PROCESSING, PROCESSING, SHIPPED)
    status = rng.choice((DELIVERED, DELIVERED, DELIVERED, CANCELLED)) if age < 0.5 else rng.choice(late)
    return Order(
        number=number,
        date=f"{1 + day % 30} {MONTHS[day // 30]}",
        status=status,
        lines=lines,
        address=rng.choice(addresses),
        shipping=shipping or rng.choice(tuple(SHIPPING)),
        payment=rng.choice(PAYMENTS),
        reason=rng.choice(REASONS) if status == CANCELLED else "",
    )
