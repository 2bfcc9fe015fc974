"""Errands about a customer's own things: gifts, orders that are replaced, settings, reviews."""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, both, pages, shows
from sites.experts import Expert
from sites.shop import sampling, skills
from sites.shop.checks import (
    at,
    cancelled,
    cart_shows,
    in_address_book,
    messaged,
    ordered,
    product_path,
    reviewed,
    subscribed,
)
from sites.shop.data import FREQUENCIES, REASONS, ShopData
from sites.shop.words import OPINIONS, TEXTS, WISHES
from sites.skills import click
from sites.task_template import TaskTemplate, always, drawn, one_of, together


class SendGift(TaskTemplate, name="shop.send_gift", horizon=21):
    intent = (
        "Buy the {product} in {colour} with {shipping} shipping to the new address {label}: {street}, {city}, "
        "{postcode}. Then send the shop a message about {subject}: {text}"
    )
    product: str = drawn(sampling.product)
    colour: str = drawn(sampling.colour, "product")
    shipping: str = drawn(sampling.shipping)
    label: str = together(sampling.new_address)
    street: str
    city: str
    postcode: str
    subject: str = always("Delivery")
    text: str = one_of(WISHES)

    def evaluation(self, data: ShopData) -> Evaluation:
        where = f"{self.label}, {self.street}, {self.city}, {self.postcode}"
        order = ordered(f"1 x {self.product}, {self.colour}", address=where, shipping=self.shipping)
        return pages(*order, messaged(self.subject, self.text))

    def milestones(self, data: ShopData) -> Milestones:
        return (
            ("The product is in the cart", cart_shows(f"{self.product}, {self.colour}")),
            ("The new address is chosen", skills.deliver_to.reached(self.label)),
            ("The order is placed", skills.place_order.reached()),
            ("The message is sent", skills.send_message.reached(self.subject, self.text)),
        )

    def expert(self) -> Expert:
        yield from skills.open_product(self.product)
        yield from skills.add_to_cart(self.colour)
        yield from click("Checkout", "link")
        yield from skills.deliver_to_new(self.label, self.street, self.city, self.postcode)
        yield from skills.ship_by(self.shipping)
        yield from skills.place_order()
        yield from click("Home", "link")
        yield from skills.send_message(self.subject, self.text)


class ReplaceOrder(TaskTemplate, name="shop.replace_order"):
    intent = (
        "Cancel order {number} with the reason {reason} and order its items again. Deliver them to {address} "
        "with {shipping} shipping."
    )
    number: int = drawn(sampling.open_order)
    reason: str = one_of(REASONS)
    address: str = drawn(sampling.address)
    shipping: str = drawn(sampling.shipping)

    def evaluation(self, data: ShopData) -> Evaluation:
        old = data.order(self.number)
        order = ordered(*old.described(), items=old.items, address=self.address, shipping=self.shipping)
        return pages(*cancelled(self.number, self.reason), *order)

    def milestones(self, data: ShopData) -> Milestones:
        chosen = shows(self.shipping, f"Deliver to {self.address}")
        return (
            ("The order is cancelled", skills.cancel_order.reached(self.number, self.reason)),
            ("Its items are in the cart", cart_shows(f"Order {self.number} is in the")),
            ("Address and shipping are chosen", both(at("/checkout/payment"), chosen)),
            ("The order is placed", skills.place_order.reached()),
        )

    def expert(self) -> Expert:
        yield from skills.cancel_order(self.number, self.reason)
        yield from skills.order_again()
        yield from skills.check_out(self.address, self.shipping)

    def steps(self, data: ShopData) -> int:
        return 13 + sampling.order_page(data, self.number)


class ChangeSettings(TaskTemplate, name="shop.change_settings", horizon=17):
    intent = (
        "Change the address {address} to {new_street} in {new_city}, add the address {label}: {street}, {city}, "
        "{postcode}, and subscribe {email} to the newsletter, {frequency}."
    )
    address: str = drawn(sampling.own_address)
    new_street: str = drawn(sampling.new_street)
    new_city: str = drawn(sampling.other_city, "address")
    label: str = together(sampling.new_address)
    street: str
    city: str
    postcode: str
    email: str = drawn(sampling.email)
    frequency: str = one_of(FREQUENCIES[1:])

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(
            in_address_book(self.address, f"{self.new_street}, {self.new_city}"),
            in_address_book(self.label, f"{self.street}, {self.city}, {self.postcode}"),
            subscribed(self.email, self.frequency),
        )

    def milestones(self, data: ShopData) -> Milestones:
        changed = f"{self.address}: {self.new_street}, {self.new_city}"
        added = f"{self.label}: {self.street}, {self.city}, {self.postcode}"
        return (
            ("The form of the address is open", at(f"/addresses/edit?label={self.address}")),
            ("The address is changed", skills.edit_address.reached(self.address, self.new_street, self.new_city)),
            ("The new address is saved", both(at("/addresses"), shows(changed, added))),
            ("The subscription is made", both(at("/newsletter"), skills.subscribe.reached(self.email, self.frequency))),
        )

    def expert(self) -> Expert:
        yield from click("Addresses", "link")
        yield from skills.edit_address(self.address, self.new_street, self.new_city)
        yield from skills.add_address(self.label, self.street, self.city, self.postcode)
        yield from click("Account", "link")
        yield from skills.subscribe(self.email, self.frequency)


class ReviewTwo(TaskTemplate, name="shop.review_two", horizon=15, split="validation"):
    intent = (
        "Review the {first} with {first_stars} and the {second} with {second_stars}, both with the title "
        "{title} and the text {text}."
    )
    first: str = together(sampling.two_products)
    first_stars: str = together(sampling.two_numbers_of_stars)
    second: str
    second_stars: str
    title: str = one_of(OPINIONS)
    text: str = one_of(TEXTS)

    def evaluation(self, data: ShopData) -> Evaluation:
        author = data.usual.name
        return pages(
            reviewed(self.first, self.first_stars, self.title, self.text, author),
            reviewed(self.second, self.second_stars, self.title, self.text, author),
        )

    def milestones(self, data: ShopData) -> Milestones:
        first, second = product_path(self.first), product_path(self.second)
        return (
            ("The form for the first review is open", at(f"{first}/review")),
            (
                "The first review is sent",
                skills.write_review.reached(self.first, self.first_stars, self.title, self.text),
            ),
            ("The form for the second review is open", at(f"{second}/review")),
            (
                "The second review is sent",
                skills.write_review.reached(self.second, self.second_stars, self.title, self.text),
            ),
        )

    def expert(self) -> Expert:
        yield from skills.write_review(self.first, self.first_stars, self.title, self.text)
        yield from skills.write_review(self.second, self.second_stars, self.title, self.text)
