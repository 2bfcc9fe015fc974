"""Tasks about the wish list, with and without logging in first."""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, both, either, has, pages, shows
from sites.experts import Expert
from sites.shop import sampling, skills
from sites.shop.checks import at, in_cart, wished
from sites.shop.data import ShopData
from sites.task_template import TaskTemplate, drawn, together


class AddWish(TaskTemplate, name="shop.add_wish", horizon=4):
    intent = "Put the {product} on the wish list."
    product: str = drawn(sampling.unwished)

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(wished(self.product))

    def milestones(self, data: ShopData) -> Milestones:
        return (
            ("Search results are shown", either(at("/search?*"), at("/product/*"))),
            ("The product is listed", shows(self.product)),
            ("The product is open", skills.open_product.reached(self.product)),
            ("The product is on the wish list", skills.wish.reached(self.product)),
        )

    def expert(self) -> Expert:
        yield from skills.wish(self.product)


class LogInAndWish(TaskTemplate, name="shop.log_in_and_wish", horizon=8):
    require_login = False
    intent = "Log in as {email} with password {password} and put the {product} on the wish list."
    email: str = together(sampling.other_customer)
    password: str
    product: str = drawn(sampling.unwished, "email")

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(wished(self.product))

    def milestones(self, data: ShopData) -> Milestones:
        return (
            ("The log-in form is open", at("/login*")),
            ("The customer is logged in", skills.log_in.reached(self.email, self.password)),
            ("The product is open", skills.open_product.reached(self.product)),
            ("The product is on the wish list", skills.wish.reached(self.product)),
        )

    def expert(self) -> Expert:
        yield from skills.log_in(self.email, self.password)
        yield from skills.wish(self.product)


class MoveWish(TaskTemplate, name="shop.move_wish", horizon=5):
    intent = "Move the {product} from the wish list to the cart and change its quantity to {quantity}."
    product: str = drawn(sampling.wish)
    quantity: int = drawn(lambda data, rng: rng.randint(2, 9))

    def evaluation(self, data: ShopData) -> Evaluation:
        return in_cart(self.product, self.quantity)

    def milestones(self, data: ShopData) -> Milestones:
        moved = skills.move_wish.reached(self.product)
        return (
            ("The wish list is open", at("/wishlist")),
            ("The product is in the cart", moved),
            ("The quantity is written", both(moved, has("Quantity", str(self.quantity)))),
            ("The quantity is changed", both(moved, shows(f"Items: {self.quantity}"))),
        )

    def expert(self) -> Expert:
        yield from skills.move_wish(self.product)
        yield from skills.set_quantity(self.quantity)
