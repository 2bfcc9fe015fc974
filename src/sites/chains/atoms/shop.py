"""The shop's atoms: wishes, the cart, past orders, addresses, the newsletter and messages."""

from __future__ import annotations

from collections.abc import Iterator

from sites.chains.atom import Atom
from sites.checks import Check, Target, both, shows
from sites.experts import Actions
from sites.shop import sampling, skills
from sites.shop.checks import (
    at,
    cancelled,
    cart_shows,
    equals,
    in_address_book,
    includes,
    messaged,
    product_path,
    subscribed,
    wished,
)
from sites.shop.data import FREQUENCIES, LABELS, REASONS, SUBJECTS, ShopData
from sites.shop.words import TEXTS, WISHES
from sites.skills import any_of, click, write
from sites.task_template import drawn, one_of

_SLUG = len("/product/")


def _in_cart(*variants: str) -> tuple[Target, ...]:
    return (includes("/cart", "#cart-lines", *(f"{variant}, " for variant in variants)),)


class _OfProduct(Atom):
    """About one product, whatever else."""

    product: str

    @property
    def slug(self) -> str:
        return product_path(self.product)[_SLUG:]

    def things(self, data: ShopData) -> Iterator[str]:
        yield self.product


class Wish(_OfProduct, name="shop.wish", length=3):
    wordings = (
        "Put the {product} on the wish list",
        "Add the {product} to your wish list",
        "Save the {product} for later on the wish list",
        "On the wish list, add the {product}",
        "Remember the {product} on the wish list",
        "Let the wish list have the {product}",
    )
    product: str = drawn(sampling.unwished)

    def expert(self) -> Actions:
        return (yield from skills.wish(self.product))

    def path(self, data: ShopData) -> str:
        return f"/product/{self.slug}/wish"

    def done(self, data: ShopData) -> Check:
        return both(at(product_path(self.product)), skills.wish.reached(self.product))

    def wanted(self, data: ShopData) -> tuple[Target, ...]:
        return (wished(self.product),)


class Unwish(_OfProduct, name="shop.unwish", length=2):
    wordings = (
        "Remove the {product} from the wish list",
        "Take the {product} off your wish list",
        "From the wish list, remove the {product}",
        "Delete the {product} from the wish list",
        "You do not want the {product} any more: take it off the wish list",
        "Strike the {product} from your wish list",
    )
    product: str = drawn(sampling.wish)

    def expert(self) -> Actions:
        yield from click("Wish list", "link")
        return (yield from click(f"Remove {self.product}", "button", rf"Remove {skills.PRODUCT}"))

    def path(self, data: ShopData) -> str:
        return f"/wishlist/{self.slug}/remove"

    def done(self, data: ShopData) -> Check:
        return both(at("/wishlist"), shows(f"Removed {self.product}"))

    def wanted(self, data: ShopData) -> tuple[Target, ...]:
        return (equals("/wishlist", f'form[action="{self.path(data)}"]', ""),)


class MoveWish(_OfProduct, name="shop.move_wish", length=2):
    wordings = (
        "Move the {product} from the wish list to the cart",
        "Take the {product} from the wish list into the cart",
        "From your wish list, move the {product} to the cart",
        "Put the {product} of your wish list in the cart",
        "The {product} on the wish list belongs in the cart: move it",
        "Let the {product} go from the wish list to the cart",
    )
    product: str = drawn(sampling.wish)

    def expert(self) -> Actions:
        return (yield from skills.move_wish(self.product))

    def path(self, data: ShopData) -> str:
        return f"/wishlist/{self.slug}/move"

    def done(self, data: ShopData) -> Check:
        return cart_shows(f"Moved {self.product}")

    def wanted(self, data: ShopData) -> tuple[Target, ...]:
        return _in_cart(self.product)


class AddToCart(_OfProduct, name="shop.add_to_cart", length=4):
    wordings = (
        "Put the {product} in {colour} in the cart",
        "Add the {product} to the cart in {colour}",
        "In the cart, put the {product} in {colour}",
        "Choose {colour} for the {product} and put it in the cart",
        "Get one {product} in {colour} into your cart",
        "Let the cart have the {product}, its colour being {colour}",
    )
    product: str = drawn(sampling.plain_product)
    colour: str = drawn(sampling.colour, "product")

    def expert(self) -> Actions:
        yield from skills.open_product(self.product)
        return (yield from skills.add_to_cart(self.colour))

    def path(self, data: ShopData) -> str:
        return product_path(self.product)

    def done(self, data: ShopData) -> Check:
        return cart_shows(f"{self.product}, {self.colour}")

    def wanted(self, data: ShopData) -> tuple[Target, ...]:
        return _in_cart(f"{self.product}, {self.colour}")


class AddSized(_OfProduct, name="shop.add_sized", length=4):
    wordings = (
        "Put the {product} of size {size} in the cart",
        "Add the {product} to the cart, size {size}",
        "In the cart, put the {product} in size {size}",
        "Choose size {size} for the {product} and put it in the cart",
        "Get one {product} into your cart, its size being {size}",
        "Let the cart have a {size} {product}",
    )
    product: str = drawn(sampling.sized_product)
    size: str = drawn(sampling.size, "product")

    def expert(self) -> Actions:
        yield from skills.open_product(self.product)
        return (yield from skills.add_to_cart(size=self.size))

    def path(self, data: ShopData) -> str:
        return product_path(self.product)

    def _variant(self, data: ShopData) -> str:
        return f"{self.product}, {data.product(self.product).colours[0]}, {self.size}"

    def done(self, data: ShopData) -> Check:
        return cart_shows(self._variant(data))

    def wanted(self, data: ShopData) -> tuple[Target, ...]:
        return _in_cart(self._variant(data))


class _OfOrder(Atom):
    """About one of the past orders, which are listed on pages."""

    number: int

    def things(self, data: ShopData) -> Iterator[str]:
        yield f"order {self.number}"
        yield from (line.product.name for line in data.order(self.number).lines)

    def steps(self, data: ShopData) -> int:
        return self.length + sampling.order_page(data, self.number)


class CancelOrder(_OfOrder, name="shop.cancel_order", length=5):
    wordings = (
        "Cancel order {number} with the reason {reason}",
        "Cancel order {number}: {reason}",
        "The reason is {reason}: cancel order {number}",
        "Give {reason} as the reason and cancel order {number}",
        "You do not need order {number}: cancel it, the reason being {reason}",
        "Call off order {number}, reason {reason}",
    )
    number: int = drawn(sampling.open_order)
    reason: str = one_of(REASONS[1:])

    def expert(self) -> Actions:
        return (yield from skills.cancel_order(self.number, self.reason))

    def path(self, data: ShopData) -> str:
        return f"/orders/{self.number}/cancel"

    def done(self, data: ShopData) -> Check:
        return skills.cancel_order.reached(self.number, self.reason)

    def wanted(self, data: ShopData) -> tuple[Target, ...]:
        return cancelled(self.number, self.reason)


class OrderAgain(_OfOrder, name="shop.order_again", length=3):
    wordings = (
        "Put the items of order {number} in the cart again",
        "Order {number} again: put its items in the cart",
        "Fill the cart with the items of order {number}",
        "In the cart, put what order {number} has",
        "Repeat order {number} as far as the cart",
        "Let the cart have all of order {number} once more",
    )
    number: int = drawn(sampling.delivered_order)

    def expert(self) -> Actions:
        yield from skills.open_order(self.number)
        return (yield from skills.order_again())

    def path(self, data: ShopData) -> str:
        return f"/orders/{self.number}/again"

    def done(self, data: ShopData) -> Check:
        return cart_shows(f"Order {self.number} is in the cart")

    def wanted(self, data: ShopData) -> tuple[Target, ...]:
        return _in_cart(*(line.describe() for line in data.order(self.number).lines))


class _OfAddress(Atom):
    """About one of the addresses."""

    label: str = drawn(sampling.own_address)

    def things(self, data: ShopData) -> Iterator[str]:
        yield f"address {self.label}"


class ChangeStreet(_OfAddress, name="shop.change_street", length=4):
    wordings = (
        "Change the street of the address {label} to {street}",
        "The address {label} is now at {street}: change its street",
        "Write {street} as the street of the address {label}",
        "For the address {label}, set the street to {street}",
        "Correct the address {label}: its street is {street}",
        "Let {street} be the street of the address {label}",
    )
    street: str = drawn(sampling.new_street)

    def expert(self) -> Actions:
        yield from click("Addresses", "link")
        yield from click(f"Edit {self.label}", "link", any_of(f"Edit {label}" for label in LABELS))
        yield from write({"Street": self.street})
        return (yield from click("Save address", "button"))

    def path(self, data: ShopData) -> str:
        return "/addresses/edit"

    def done(self, data: ShopData) -> Check:
        return both(at("/addresses"), shows(f"Saved {self.label}", f"{self.label}: {self.street}, "))

    def wanted(self, data: ShopData) -> tuple[Target, ...]:
        return (in_address_book(self.label, f"{self.street}, "),)


class DeleteAddress(_OfAddress, name="shop.delete_address", length=2):
    wordings = (
        "Delete the address {label}",
        "Remove {label} from the addresses",
        "The address {label} is not needed: delete it",
        "From your addresses, delete {label}",
        "Take {label} off your addresses",
        "Let there be no address {label} any more",
    )

    def expert(self) -> Actions:
        yield from click("Addresses", "link")
        return (yield from click(f"Delete {self.label}", "button", any_of(f"Delete {label}" for label in LABELS)))

    def path(self, data: ShopData) -> str:
        return "/addresses/delete"

    def done(self, data: ShopData) -> Check:
        return both(at("/addresses"), shows(f"Deleted {self.label}"))

    def wanted(self, data: ShopData) -> tuple[Target, ...]:
        return (equals("/addresses", f'[data-label="{self.label}"]', ""),)


class Subscribe(Atom, name="shop.subscribe", length=4):
    from_home = True
    wordings = (
        "Subscribe {email} to the newsletter, {frequency}",
        "Have the {frequency} newsletter sent to {email}",
        "Subscribe to the newsletter, {frequency}, with the email {email}",
        "To {email}, subscribe the newsletter as {frequency}",
        "Order the newsletter for {email}; it should come {frequency}",
        "Let {email} get the newsletter {frequency}",
    )
    email: str = drawn(sampling.email)
    frequency: str = one_of(FREQUENCIES[1:])

    def expert(self) -> Actions:
        return (yield from skills.subscribe(self.email, self.frequency))

    def path(self, data: ShopData) -> str:
        return "/newsletter"

    def done(self, data: ShopData) -> Check:
        return both(at("/newsletter"), skills.subscribe.reached(self.email, self.frequency))

    def wanted(self, data: ShopData) -> tuple[Target, ...]:
        return (subscribed(self.email, self.frequency),)


class SendMessage(Atom, name="shop.send_message", length=4):
    from_home = True
    wordings = (
        'Send the shop a message about {subject}: "{text}"',
        'Write to the shop about {subject}: "{text}"',
        'About {subject}, send the shop the message "{text}"',
        'Tell the shop "{text}", the subject being {subject}',
        'Contact the shop with the subject {subject} and the text "{text}"',
        'Let the shop know "{text}"; it is about {subject}',
    )
    subject: str = one_of(SUBJECTS[1:])
    text: str = one_of((*WISHES, *TEXTS))

    def expert(self) -> Actions:
        return (yield from skills.send_message(self.subject, self.text))

    def path(self, data: ShopData) -> str:
        return "/contact"

    def done(self, data: ShopData) -> Check:
        return skills.send_message.reached(self.subject, self.text)

    def wanted(self, data: ShopData) -> tuple[Target, ...]:
        return (messaged(self.subject, self.text),)
