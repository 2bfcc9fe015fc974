"""Tasks about the customer's past orders and addresses."""

from __future__ import annotations

import random
from typing import Self

from sites.checks import Evaluation, Milestones, answer_including, both, either, has, pages, shows
from sites.experts import Expert, read
from sites.shop import sampling, skills
from sites.shop.checks import at, cancelled, in_address_book
from sites.shop.data import REASONS, ShopData
from sites.skills import click, finish
from sites.task_template import TaskTemplate, drawn, one_of, together


class OrderTotal(TaskTemplate, name="shop.order_total"):
    intent = "What is the total of order {number}?"
    number: int

    @classmethod
    def sample(cls, data: ShopData, rng: random.Random) -> Self:
        totals = [f"${order.total}" for order in data.usual.orders]
        while True:
            number = sampling.order(data, rng)
            # A total that begins another one ("$15", "$156") could be answered by the wrong order.
            if sum(total.startswith(f"${data.order(number).total}") for total in totals) == 1:
                return cls(number=number)

    def evaluation(self, data: ShopData) -> Evaluation:
        return answer_including(f"${data.order(self.number).total}")

    def milestones(self, data: ShopData) -> Milestones:
        return (
            ("The orders are shown", at("/orders*")),
            ("The order is listed", both(at("/orders*"), shows(f"Order {self.number}"))),
            ("An order is open", at("/orders/*")),
            ("The order is open", skills.open_order.reached(self.number)),
        )

    def expert(self) -> Expert:
        seen = yield from skills.open_order(self.number)
        yield from finish(read(seen, r"Total: (\$\d+)"), r"\$\d+")

    def steps(self, data: ShopData) -> int:
        return 3 + sampling.order_page(data, self.number)


class CancelOrder(TaskTemplate, name="shop.cancel_order"):
    intent = "Cancel order {number}. The reason is: {reason}."
    number: int = drawn(sampling.open_order)
    reason: str = one_of(REASONS)

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(*cancelled(self.number, self.reason))

    def milestones(self, data: ShopData) -> Milestones:
        form = at(f"/orders/{self.number}/cancel")
        done = skills.cancel_order.reached(self.number, self.reason)
        return (
            ("The order is open", at(f"/orders/{self.number}*")),
            ("The form is open", form),
            ("The reason is chosen", either(both(form, has("Reason", self.reason)), done)),
            ("The order is cancelled", done),
        )

    def expert(self) -> Expert:
        yield from skills.cancel_order(self.number, self.reason)

    def steps(self, data: ShopData) -> int:
        return 6 + sampling.order_page(data, self.number)


class AddAddress(TaskTemplate, name="shop.add_address", horizon=8):
    intent = "Add the address {label}: {street}, {city}, {postcode}."
    label: str = together(sampling.new_address)
    street: str
    city: str
    postcode: str

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(in_address_book(self.label, f"{self.street}, {self.city}, {self.postcode}"))

    def milestones(self, data: ShopData) -> Milestones:
        form, done = at("/addresses/new"), skills.add_address.reached(self.label, self.street, self.city, self.postcode)
        half = both(form, has("Label", self.label), has("Street", self.street))
        full = both(form, has("City", self.city), has("Postcode", self.postcode))
        return (
            ("The form is open", form),
            ("Label and street are written", either(half, done)),
            ("City and postcode are written", either(full, done)),
            ("The address is saved", done),
        )

    def expert(self) -> Expert:
        yield from click("Addresses", "link")
        yield from skills.add_address(self.label, self.street, self.city, self.postcode)


class EditAddress(TaskTemplate, name="shop.edit_address", horizon=6, split="test"):
    intent = "Change the address {address} to {street} in {city}."
    address: str
    street: str = drawn(sampling.new_street)
    city: str

    @classmethod
    def sample(cls, data: ShopData, rng: random.Random) -> Self:
        label = sampling.own_address(data, rng)
        return cls.draw(data, rng, address=label, city=sampling.other_city(data, rng, label))

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(in_address_book(self.address, f"{self.street}, {self.city}"))

    def milestones(self, data: ShopData) -> Milestones:
        form = at(f"/addresses/edit?label={self.address}")
        done = skills.edit_address.reached(self.address, self.street, self.city)
        return (
            ("The form is open", form),
            ("The street is written", either(both(form, has("Street", self.street)), done)),
            ("The city is written", either(both(form, has("City", self.city)), done)),
            ("The address is saved", done),
        )

    def expert(self) -> Expert:
        yield from click("Addresses", "link")
        yield from skills.edit_address(self.address, self.street, self.city)
