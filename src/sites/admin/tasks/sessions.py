"""Tasks in which one has to log in: at the start, or again when the log-in has run out.

The start address says after how many pages it runs out.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Self

from sites.admin import sampling, skills
from sites.admin.checks import at, changed_order, changed_product, recorded
from sites.admin.data import AdminData
from sites.admin.tasks.about import LoggingIn, Saved
from sites.admin.tasks.orders import CancelOrder, HoldOrder
from sites.checks import Milestones, either, has, shows
from sites.experts import Expert
from sites.shop.data import CANCELLED


class LogInAndHold(HoldOrder, LoggingIn, name="admin.log_in_and_hold", horizon=7):
    require_login = False
    intent = "Log in as {user} with the password {password} and put order {number} on hold."

    def milestones(self, data: AdminData) -> Milestones:
        inside = skills.log_in.reached(self.user, self.password)
        return (
            ("The user name is written", either(has("User name", self.user), inside)),
            ("The user is logged in", inside),
            ("The order is open", skills.open_order.reached(self.number)),
            ("The order is on hold", recorded(*self.record(data))),
        )

    def expert(self) -> Expert:
        yield from skills.log_in(self.user, self.password)
        yield from skills.hold_order(self.number)


class ExpiredProduct(Saved, LoggingIn, name="admin.expired_product", horizon=12):
    start = "/?session_pages=2"
    intent = "Change the {product} to ${price} and {stock} in stock. Log in as {user} with {password} if you are asked."
    product: str
    price: int
    stock: int

    @classmethod
    def sample(cls, data: AdminData, rng: random.Random) -> Self:
        product = sampling.product(data, rng)
        return cls.draw(data, rng, product=product, **sampling.price_and_stock(data, rng, product))

    def record(self, data: AdminData) -> tuple[str, str]:
        return changed_product(data, self.product, price=self.price, stock=self.stock)

    def milestones(self, data: AdminData) -> Milestones:
        path, summary = self.record(data)
        return (
            ("The products are shown", either(at("/products*"), at(path))),
            ("The product is open", at(path)),
            ("The price is written", either(has("Price", str(self.price)), shows(summary))),
            ("The product is saved", recorded(path, summary)),
        )

    def expert(self) -> Expert:
        fields = {"Price": str(self.price), "Stock": str(self.stock)}
        attempt = partial(skills.edit_product, self.product, fields)
        yield from skills.staying_logged_in(attempt, self.user, self.password)


class ExpiredCancel(CancelOrder, LoggingIn, name="admin.expired_cancel", horizon=14):
    start = "/?session_pages=3"
    intent = "Cancel order {number} with the comment {comment}. Log in as {user} with {password} if you are asked."

    def milestones(self, data: AdminData) -> Milestones:
        done = recorded(*changed_order(data, self.number, CANCELLED))
        return (
            ("The order is open", at(f"{self.path}*")),
            ("The comment is written", either(has("Comment", self.comment), done)),
            ("The user is logged in again", either(skills.log_in.reached(self.user, self.password), done)),
            ("The order is cancelled", done),
        )

    def expert(self) -> Expert:
        yield from skills.staying_logged_in(super().expert, self.user, self.password)
