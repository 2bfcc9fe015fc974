"""Tasks that end with a placed order: the shop's long tasks."""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, both, either, pages, shows
from sites.experts import Expert
from sites.shop import sampling, skills
from sites.shop.checks import at, cart_shows, ordered
from sites.shop.data import ShopData
from sites.skills import click
from sites.task_template import TaskTemplate, drawn, together


class BuyProduct(TaskTemplate, name="shop.buy_product", horizon=11):
    intent = "Buy the {product} in {colour}. Deliver it to {address} with {shipping} shipping."
    product: str = drawn(sampling.product)
    colour: str = drawn(sampling.colour, "product")
    address: str = drawn(sampling.address)
    shipping: str = drawn(sampling.shipping)

    def evaluation(self, data: ShopData) -> Evaluation:
        line = f"1 x {self.product}, {self.colour}"
        return pages(*ordered(line, address=self.address, shipping=self.shipping))

    def milestones(self, data: ShopData) -> Milestones:
        return skills.bought(cart_shows(f"{self.product}, {self.colour}", "Items: 1"), self.address, self.shipping)

    def expert(self) -> Expert:
        yield from skills.open_product(self.product)
        yield from skills.add_to_cart(self.colour)
        yield from skills.check_out(self.address, self.shipping)


class BuyRanked(TaskTemplate, name="shop.buy_ranked", horizon=13):
    intent = "Buy the {rank} of the {category} in {colour}. Deliver it to {address} with {shipping} shipping."
    category: str = together(sampling.ranked)
    rank: str
    colour: str = drawn(sampling.meant_colour, "category", "rank")
    address: str = drawn(sampling.address)
    shipping: str = drawn(sampling.shipping)

    def variant(self, data: ShopData) -> str:
        return f"{sampling.meant(data, self.category, self.rank).name}, {self.colour}"

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(*ordered(f"1 x {self.variant(data)}", address=self.address, shipping=self.shipping))

    def milestones(self, data: ShopData) -> Milestones:
        return skills.bought(cart_shows(self.variant(data), "Items: 1"), self.address, self.shipping)

    def expert(self) -> Expert:
        yield from skills.open_ranked(self.category, self.rank)
        yield from skills.add_to_cart(self.colour)
        yield from skills.check_out(self.address, self.shipping)


class BuyTwo(TaskTemplate, name="shop.buy_two", horizon=12, split="validation"):
    intent = "Buy the {first} and the {second} with {shipping} shipping."
    first: str = drawn(sampling.product)
    second: str = drawn(sampling.other_product, "first")
    shipping: str = drawn(sampling.shipping)

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(*ordered(f"1 x {self.first}", f"1 x {self.second}", items=2, shipping=self.shipping))

    def milestones(self, data: ShopData) -> Milestones:
        return (
            ("One product is in the cart", either(cart_shows(self.first), cart_shows(self.second))),
            ("Both products are in the cart", cart_shows(self.first, self.second, "Items: 2")),
            (
                "The shipping method is chosen",
                both(at("/checkout/payment"), shows(self.shipping, self.first, self.second)),
            ),
            ("The order is placed", skills.place_order.reached()),
        )

    def expert(self) -> Expert:
        for product in (self.first, self.second):
            yield from skills.open_product(product)
            yield from skills.add_to_cart()
        yield from skills.check_out(shipping=self.shipping)


class BuyToNewAddress(TaskTemplate, name="shop.buy_to_new_address", horizon=15):
    intent = "Buy the {product} with {shipping} shipping to the new address {label}: {street}, {city}, {postcode}."
    product: str = drawn(sampling.product)
    label: str = together(sampling.new_address)
    street: str
    city: str
    postcode: str
    shipping: str = drawn(sampling.shipping)

    def evaluation(self, data: ShopData) -> Evaluation:
        where = f"{self.label}, {self.street}, {self.city}, {self.postcode}"
        return pages(*ordered(f"1 x {self.product}", address=where, shipping=self.shipping))

    def milestones(self, data: ShopData) -> Milestones:
        return skills.bought(cart_shows(self.product, "Items: 1"), self.label, self.shipping)

    def expert(self) -> Expert:
        yield from skills.open_product(self.product)
        yield from skills.add_to_cart()
        yield from click("Checkout", "link")
        yield from skills.deliver_to_new(self.label, self.street, self.city, self.postcode)
        yield from skills.ship_by(self.shipping)
        yield from skills.place_order()


class Reorder(TaskTemplate, name="shop.reorder"):
    intent = "Order the items of order {number} again. Deliver them to {address} with {shipping} shipping."
    number: int = drawn(sampling.delivered_order)
    address: str = drawn(sampling.address)
    shipping: str = drawn(sampling.shipping)

    def evaluation(self, data: ShopData) -> Evaluation:
        old = data.order(self.number)
        return pages(*ordered(*old.described(), items=old.items, address=self.address, shipping=self.shipping))

    def milestones(self, data: ShopData) -> Milestones:
        return skills.bought(cart_shows(f"Order {self.number} is in the cart"), self.address, self.shipping)

    def expert(self) -> Expert:
        yield from skills.open_order(self.number)
        yield from skills.order_again()
        yield from skills.check_out(self.address, self.shipping)

    def steps(self, data: ShopData) -> int:
        return 10 + sampling.order_page(data, self.number)


class BuyWished(TaskTemplate, name="shop.buy_wished", horizon=9, split="test"):
    intent = "Buy the {product} from the wish list. Deliver it to {address} with {shipping} shipping."
    product: str = drawn(sampling.wish)
    address: str = drawn(sampling.address)
    shipping: str = drawn(sampling.shipping)

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(*ordered(f"1 x {self.product}", address=self.address, shipping=self.shipping))

    def milestones(self, data: ShopData) -> Milestones:
        return skills.bought(cart_shows(self.product, "Items: 1"), self.address, self.shipping)

    def expert(self) -> Expert:
        yield from skills.move_wish(self.product)
        yield from skills.check_out(self.address, self.shipping)
