"""What the back office keeps records of.

Owns the record types. All are frozen; a session that changes one keeps its own copy (``sites.overlay``).
Money is whole dollars; dates are ISO dates.
"""

from __future__ import annotations

from dataclasses import dataclass

from sites.shop.data import SHIPPING, Line


@dataclass(frozen=True, slots=True)
class Invoice:
    """The bill of an order."""

    number: int
    date: str


@dataclass(frozen=True, slots=True)
class Shipment:
    """The parcel of an order."""

    number: int
    carrier: str
    tracking: str


@dataclass(frozen=True, slots=True)
class CreditMemo:
    """Money that went back for an order."""

    number: int
    reason: str
    amount: int


@dataclass(frozen=True, slots=True)
class Order:
    """One order with everything that happened to it; ``comments`` has the oldest first."""

    number: int
    date: str
    email: str
    customer: str
    status: str
    lines: tuple[Line, ...]
    city: str
    shipping: str
    invoice: Invoice | None = None
    shipment: Shipment | None = None
    memo: CreditMemo | None = None
    comments: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Goods and shipping, dollars."""
        return sum(line.price * line.quantity for line in self.lines) + SHIPPING[self.shipping]

    @property
    def summary(self) -> str:
        """What the order's page says first."""
        return f"{self.status}, {self.date}, {self.customer}, ${self.total}"


@dataclass(frozen=True, slots=True)
class Product:
    """A product as the back office sees it; ``slug`` is its address, ``status`` says whether it is for sale."""

    slug: str
    name: str
    sku: str
    category: str
    price: int
    stock: int
    status: str

    @property
    def summary(self) -> str:
        """What the product's page says first."""
        return f"{self.name}, {self.sku}, {self.category}, ${self.price}, {self.stock} in stock, {self.status}"


@dataclass(frozen=True, slots=True)
class Customer:
    """A customer; ``phone`` is empty where none is known."""

    email: str
    name: str
    group: str
    phone: str
    city: str

    @property
    def summary(self) -> str:
        """What the customer's page says first."""
        return f"{self.name}, {self.email}, {self.group}, {self.city}"


@dataclass(frozen=True, slots=True)
class Review:
    """A review of a product by its name."""

    number: int
    product: str
    author: str
    stars: int
    title: str
    text: str
    status: str


@dataclass(frozen=True, slots=True)
class Coupon:
    """A price rule: so many percent off with a code, for a group of customers, in a period."""

    code: str
    name: str
    percent: int
    group: str
    start: str
    end: str

    @property
    def summary(self) -> str:
        """What the coupon's page says first."""
        return f"{self.name}: {self.code}, {self.percent} percent, {self.group}, {self.start} to {self.end}"


@dataclass(frozen=True, slots=True)
class Page:
    """A content page of the shop; ``slug`` is its address and stays."""

    slug: str
    title: str
    text: str
    status: str

    @property
    def summary(self) -> str:
        """What the page's form says first."""
        return f"{self.title}, {self.status}: {self.text}"
