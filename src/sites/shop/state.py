"""What one session changes in the shop: an overlay over the shared base data.

Owns every rule of the shop (stock, quantities, what may be cancelled). Invariants: base data is never
touched; a state costs microseconds to make; a refused change raises ``Refused`` and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass, replace

from sites.shop.catalogue import Product, Review
from sites.shop.data import (
    CANCELLED,
    PAYMENTS,
    PROCESSING,
    SHIPPING,
    Account,
    Address,
    Line,
    Order,
    ShopData,
)
from sites.site import Refused, State

MAX_QUANTITY = 9
MAX_ENTRIES = 50
"""Most cart lines, wishes, addresses, messages or own reviews that a session may hold."""
FIRST_NEW_ORDER = 3001
TODAY = "1 February"


@dataclass
class Customer:
    """One account's changeable side."""

    account: Account
    addresses: list[Address]
    wishes: list[Product]
    orders: list[Order]

    @classmethod
    def of(cls, account: Account) -> Customer:
        """Start from what the account has in the base data."""
        return cls(account, list(account.addresses), list(account.wishes), list(account.orders))


@dataclass
class Draft:
    """What the customer has chosen so far on the way through the checkout."""

    address: str = ""
    shipping: str = ""


@dataclass
class Newsletter:
    """A subscription."""

    email: str
    frequency: str


@dataclass
class Message:
    """A message to the shop."""

    subject: str
    text: str


class ShopState(State):
    """One session of the shop."""

    def __init__(self, data: ShopData, account: Account | None) -> None:
        super().__init__()
        self.data = data
        self.cart: list[Line] = []
        self.draft = Draft()
        self.newsletter: Newsletter | None = None
        self.messages: list[Message] = []
        self._own_reviews: dict[str, list[Review]] = {}
        self._placed = 0
        self._customers: dict[str, Customer] = {}
        self._email = account.email if account else None

    @property
    def customer(self) -> Customer | None:
        """Who is logged in, if anyone."""
        if self._email is None:
            return None
        if self._email not in self._customers:
            self._customers[self._email] = Customer.of(self.data.accounts[self._email])
        return self._customers[self._email]

    def log_in(self, email: str, password: str) -> None:
        """Log in, or refuse without saying which of the two was wrong."""
        account = self.data.accounts.get(email.lower())
        if account is None or account.password != password:
            raise Refused("Email or password is wrong")
        self._email = account.email

    def log_out(self) -> None:
        """Log out; the cart stays, as in most shops."""
        self._email = None
        self.draft = Draft()

    def reviews(self, product: Product) -> tuple[Review, ...]:
        """Return the product's reviews, newest first."""
        return (*reversed(self._own_reviews.get(product.slug, [])), *product.reviews)

    def add_review(self, product: Product, review: Review) -> None:
        """Publish a review at once."""
        reviews = self._own_reviews.setdefault(product.slug, [])
        _bounded(reviews)
        reviews.append(review)

    def add_to_cart(self, product: Product, colour: str, size: str, quantity: int) -> None:
        """Add pieces of a variant; the same variant is one line."""
        if colour not in product.colours:
            raise Refused("Choose a colour")
        if (size not in product.sizes) if product.sizes else size:
            raise Refused("Choose a size")
        for index, line in enumerate(self.cart):
            if (line.product, line.colour, line.size) == (product, colour, size):
                self.set_quantity(index, line.quantity + quantity)
                return
        _check_quantity(product, quantity)
        _bounded(self.cart)
        self.cart.append(Line(product, colour, size, quantity))

    def set_quantity(self, index: int, quantity: int) -> None:
        """Change the number of pieces of a cart line."""
        line = self._line(index)
        _check_quantity(line.product, quantity)
        self.cart[index] = replace(line, quantity=quantity)

    def remove_line(self, index: int) -> Line:
        """Take a line out of the cart and return it."""
        self._line(index)
        return self.cart.pop(index)

    def place_order(self, customer: Customer, payment: str) -> Order:
        """Turn the cart and the draft into an order, newest last."""
        address = find_address(customer, self.draft.address)
        if not self.cart or address is None or self.draft.shipping not in SHIPPING:
            raise Refused("Finish the earlier steps first")
        if payment not in PAYMENTS:
            raise Refused("Choose how to pay")
        _bounded(customer.orders, MAX_ENTRIES + len(customer.account.orders))
        number = FIRST_NEW_ORDER + self._placed
        order = Order(number, TODAY, PROCESSING, tuple(self.cart), address, self.draft.shipping, payment)
        self._placed += 1
        customer.orders.append(order)
        self.cart, self.draft = [], Draft()
        return order

    def cancel_order(self, customer: Customer, number: int, reason: str) -> None:
        """Cancel an order that is still being processed."""
        for index, order in enumerate(customer.orders):
            if order.number == number:
                if order.status != PROCESSING:
                    raise Refused(f"This order is {order.status.lower()} and cannot be cancelled")
                customer.orders[index] = replace(order, status=CANCELLED, reason=reason)
                return
        raise Refused("There is no such order")

    def order_again(self, order: Order) -> None:
        """Put the order's lines into the cart."""
        for line in order.lines:
            self.add_to_cart(line.product, line.colour, line.size, line.quantity)

    def save_address(self, customer: Customer, address: Address, replaces: str = "") -> None:
        """Add an address, or put it in the place of the one labelled ``replaces``."""
        taken = [known.label for known in customer.addresses if known.label != replaces]
        if address.label in taken:
            raise Refused("You have an address with this label")
        labels = [known.label for known in customer.addresses]
        if replaces in labels:
            customer.addresses[labels.index(replaces)] = address
        else:
            _bounded(customer.addresses)
            customer.addresses.append(address)

    def send_message(self, message: Message) -> None:
        """Keep a message to the shop."""
        _bounded(self.messages)
        self.messages.append(message)

    def wish(self, customer: Customer, product: Product) -> None:
        """Put a product on the wish list; twice is once."""
        if product not in customer.wishes:
            _bounded(customer.wishes)
            customer.wishes.append(product)

    def _line(self, index: int) -> Line:
        if not 0 <= index < len(self.cart):
            raise Refused("This item is no longer in the cart")
        return self.cart[index]


def find_address(customer: Customer, label: str) -> Address | None:
    """Return the customer's address with this label, if there is one."""
    return next((address for address in customer.addresses if address.label == label), None)


def _check_quantity(product: Product, quantity: int) -> None:
    if not 1 <= quantity <= MAX_QUANTITY:
        raise Refused(f"Quantity must be 1 to {MAX_QUANTITY}")
    if quantity > product.stock:
        raise Refused("This product is out of stock" if not product.stock else f"Only {product.stock} left")


def _bounded(entries: Sized, limit: int = MAX_ENTRIES) -> None:
    if len(entries) >= limit:
        raise Refused("There is no room for more")
