"""Errands that end with a placed order: several products, comparisons, somebody else's account."""

from __future__ import annotations

import random
from typing import Self

from sites.checks import Evaluation, Milestones, pages
from sites.experts import Expert
from sites.shop import sampling, skills
from sites.shop.catalogue import mean_stars
from sites.shop.checks import cart_shows, equals, ordered
from sites.shop.data import LABELS, ShopData
from sites.skills import click, noting, search
from sites.task_template import TaskTemplate, always, drawn, together


class BuyVariants(TaskTemplate, name="shop.buy_variants", horizon=17):
    intent = (
        "Buy {quantity} of the {first} in {first_colour} and the {second} in {second_colour} and size {size}. "
        "Deliver them to {address} with {shipping} shipping."
    )
    quantity: int = drawn(sampling.quantity)
    first: str
    first_colour: str = drawn(sampling.colour, "first")
    second: str
    second_colour: str = drawn(sampling.colour, "second")
    size: str = drawn(sampling.size, "second")
    address: str = drawn(sampling.address)
    shipping: str = drawn(sampling.shipping)

    @classmethod
    def sample(cls, data: ShopData, rng: random.Random) -> Self:
        return cls.draw(data, rng, first=sampling.plain_product(data, rng), second=sampling.sized_product(data, rng))

    @property
    def variants(self) -> tuple[str, str]:
        return f"{self.first}, {self.first_colour}", f"{self.second}, {self.second_colour}, {self.size}"

    def evaluation(self, data: ShopData) -> Evaluation:
        first, second = self.variants
        lines, items = (f"{self.quantity} x {first}", f"1 x {second}"), self.quantity + 1
        return pages(*ordered(*lines, items=items, address=self.address, shipping=self.shipping))

    def milestones(self, data: ShopData) -> Milestones:
        return skills.bought(cart_shows(*self.variants, f"Items: {self.quantity + 1}"), self.address, self.shipping)

    def expert(self) -> Expert:
        yield from skills.open_product(self.first)
        yield from skills.add_to_cart(self.first_colour, quantity=self.quantity)
        yield from skills.open_product(self.second)
        yield from skills.add_to_cart(self.second_colour, self.size)
        yield from skills.check_out(self.address, self.shipping)


class BuyBetterRated(TaskTemplate, name="shop.buy_better_rated"):
    intent = (
        "Buy the {first} or the {second}, whichever has more stars, in {colour}. Deliver it to {address} with "
        "{shipping} shipping."
    )
    first: str = together(sampling.two_of_different_rating)
    second: str
    colour: str = drawn(sampling.colour, "first")
    address: str = drawn(sampling.address)
    shipping: str = drawn(sampling.shipping)

    def better(self, data: ShopData) -> str:
        return max((self.first, self.second), key=lambda name: mean_stars(data.product(name).reviews))

    def evaluation(self, data: ShopData) -> Evaluation:
        line = f"1 x {self.better(data)}, {self.colour}"
        return pages(*ordered(line, address=self.address, shipping=self.shipping))

    def milestones(self, data: ShopData) -> Milestones:
        return skills.bought(cart_shows(f"{self.better(data)}, {self.colour}", "Items: 1"), self.address, self.shipping)

    def expert(self) -> Expert:
        seen = yield from search(self.first)
        first = skills.listed(seen, self.first, "rating")
        seen = yield from noting(f"{self.first} {first}", search(self.second))
        better = self.first if float(first) > float(skills.listed(seen, self.second, "rating")) else self.second
        if better == self.first:
            yield from search(better)
        yield from click(better, "link", skills.PRODUCT)
        yield from skills.add_to_cart(self.colour)
        yield from skills.check_out(self.address, self.shipping)

    def steps(self, data: ShopData) -> int:
        return 12 if self.better(data) == self.second else 13


class BuyTwoRanked(TaskTemplate, name="shop.buy_two_ranked", horizon=20, split="test"):
    intent = (
        "Buy the {rank} of the {category} of kind {kind} in {colour} and the {other_rank} of the "
        "{other_category} in {other_colour} with {shipping} shipping."
    )
    category: str
    kind: str
    rank: str
    colour: str = drawn(sampling.meant_colour, "category", "rank", "kind")
    other_category: str
    other_rank: str
    other_colour: str
    shipping: str = drawn(sampling.shipping)

    @classmethod
    def sample(cls, data: ShopData, rng: random.Random) -> Self:
        while True:
            one, other = sampling.ranked_kind(data, rng), sampling.ranked(data, rng)
            colour = sampling.meant_colour(data, rng, **other)
            first_once = all(sampling.first_in_one_order(data, **ranked) for ranked in (one, other))
            if one["category"] != other["category"] and first_once:
                others = {f"other_{name}": value for name, value in other.items()}
                return cls.draw(data, rng, **one, **others, other_colour=colour)

    def variants(self, data: ShopData) -> tuple[str, str]:
        one = sampling.meant(data, self.category, self.rank, self.kind)
        other = sampling.meant(data, self.other_category, self.other_rank)
        return f"{one.name}, {self.colour}", f"{other.name}, {self.other_colour}"

    def evaluation(self, data: ShopData) -> Evaluation:
        lines = (f"1 x {variant}" for variant in self.variants(data))
        return pages(*ordered(*lines, items=2, shipping=self.shipping))

    def milestones(self, data: ShopData) -> Milestones:
        return skills.bought(cart_shows(*self.variants(data), "Items: 2"), "", self.shipping)

    def expert(self) -> Expert:
        yield from skills.open_ranked(self.category, self.rank, self.kind)
        yield from skills.add_to_cart(self.colour)
        yield from click("Home", "link")
        yield from skills.open_ranked(self.other_category, self.other_rank)
        yield from skills.add_to_cart(self.other_colour)
        yield from skills.check_out(shipping=self.shipping)


class OrderWishes(TaskTemplate, name="shop.order_wishes", horizon=13):
    intent = (
        "Order {quantity} of the {first} and one of the {second} from the wish list. Deliver them to {address} "
        "with {shipping} shipping."
    )
    quantity: int = drawn(sampling.quantity)
    first: str
    second: str
    address: str = drawn(sampling.address)
    shipping: str = drawn(sampling.shipping)

    @classmethod
    def sample(cls, data: ShopData, rng: random.Random) -> Self:
        first, second = rng.sample(data.usual.wishes, 2)
        return cls.draw(data, rng, first=first.name, second=second.name)

    def evaluation(self, data: ShopData) -> Evaluation:
        lines, items = (f"{self.quantity} x {self.first}", f"1 x {self.second}"), self.quantity + 1
        return pages(*ordered(*lines, items=items, address=self.address, shipping=self.shipping))

    def milestones(self, data: ShopData) -> Milestones:
        ready = cart_shows(self.first, self.second, f"Items: {self.quantity + 1}")
        return skills.bought(ready, self.address, self.shipping)

    def expert(self) -> Expert:
        yield from skills.move_wish(self.first)
        yield from skills.move_wish(self.second)
        # What was moved first is the first line, and its field and button the first of their names.
        yield from skills.set_quantity(self.quantity)
        yield from skills.check_out(self.address, self.shipping)


class LogInAndBuy(TaskTemplate, name="shop.log_in_and_buy", horizon=15):
    require_login = False
    intent = (
        "Log in as {email} with password {password} and buy the {product} in {colour}. Deliver it to {address} "
        "with {shipping} shipping."
    )
    email: str = together(sampling.other_customer)
    password: str
    product: str = drawn(sampling.product)
    colour: str = drawn(sampling.colour, "product")
    address: str = always(LABELS[1])
    shipping: str = drawn(sampling.shipping)

    def evaluation(self, data: ShopData) -> Evaluation:
        line, name = f"1 x {self.product}, {self.colour}", data.accounts[self.email].name
        order = ordered(line, address=self.address, shipping=self.shipping)
        return pages(*order, equals("/account", "#name", name))

    def milestones(self, data: ShopData) -> Milestones:
        return skills.bought(cart_shows(f"{self.product}, {self.colour}", "Items: 1"), self.address, self.shipping)

    def expert(self) -> Expert:
        yield from skills.log_in(self.email, self.password)
        yield from skills.open_product(self.product)
        yield from skills.add_to_cart(self.colour)
        yield from skills.check_out(self.address, self.shipping)
