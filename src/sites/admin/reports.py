"""Figures of a period: sales, the best customers, the best products.

Owns the arithmetic. Pure. Cancelled orders are left out everywhere; ties stand in alphabetical order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from sites.admin.records import Order
from sites.shop.data import CANCELLED

STEPS = {"Month": 7, "Day": 10, "Year": 4}
"""How fine a sales report is, and how many letters of a date that takes."""
Ranked = list[tuple[str, int, int]]


def counted(orders: Iterable[Order], start: str, end: str) -> list[Order]:
    """Return the orders that count in a period, both days included."""
    return [order for order in orders if start <= order.date <= end and order.status != CANCELLED]


def sales(orders: Sequence[Order], step: str) -> Ranked:
    """Return for each month, day or year: its name, the number of orders, and their total in dollars."""
    totals, numbers = Counter[str](), Counter[str]()
    for order in orders:
        when = order.date[: STEPS[step]]
        totals[when] += order.total
        numbers[when] += 1
    return [(when, numbers[when], totals[when]) for when in sorted(numbers)]


def customers(orders: Sequence[Order]) -> Ranked:
    """Return for each customer: name, number of orders, and their total in dollars, the largest first."""
    totals, numbers = Counter[str](), Counter[str]()
    for order in orders:
        totals[order.customer] += order.total
        numbers[order.customer] += 1
    return sorted(((name, numbers[name], totals[name]) for name in numbers), key=lambda row: (-row[2], row[0]))


def bestsellers(orders: Sequence[Order]) -> Ranked:
    """Return for each product: name, pieces sold, and their price together in dollars, the most pieces first."""
    totals, pieces = Counter[str](), Counter[str]()
    for line in (line for order in orders for line in order.lines):
        totals[line.product.name] += line.price * line.quantity
        pieces[line.product.name] += line.quantity
    return sorted(((name, pieces[name], totals[name]) for name in pieces), key=lambda row: (-row[1], row[0]))
