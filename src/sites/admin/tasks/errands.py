"""Tasks of many steps, put together from what shorter ones teach."""

from __future__ import annotations

from sites.admin import sampling, skills
from sites.admin.checks import (
    at,
    changed_order,
    changed_page,
    changed_product,
    equals,
    includes,
    moved_customer,
    new_coupon,
    new_product,
    record,
    recorded,
    shipped,
)
from sites.admin.data import AdminData
from sites.admin.tasks.about import AboutOrder, NewCoupon, NewProduct
from sites.admin.words import REFUNDED
from sites.checks import Evaluation, Milestones, both, either, pages, shows
from sites.experts import Expert
from sites.shop.data import SHIPPED
from sites.skills import choose, click, write
from sites.task_template import TaskTemplate, drawn, together


class ReplaceCoupon(NewCoupon, name="admin.replace_coupon", split="validation"):
    intent = (
        "Delete the coupon {old} and add the coupon {name} with the code {code}: {percent} percent for the group "
        "{group} from {start} to {end}."
    )
    old: str = drawn(sampling.coupon)

    def evaluation(self, data: AdminData) -> Evaluation:
        gone = equals(f"/coupons/{self.old}", "#record", "")
        count = equals("/coupons", "#count", f"{len(data.coupons)} coupons")
        return pages(record(*new_coupon(*self.coupon)), gone, count)

    def milestones(self, data: AdminData) -> Milestones:
        return (
            ("The coupons are shown", skills.open_table.reached("Coupons")),
            ("The old coupon is deleted", both(at("/coupons"), shows(f"Deleted {self.old}"))),
            ("The form is open", at("/coupons/new")),
            ("The new coupon is saved", skills.add_coupon.reached(*self.coupon)),
        )

    def expert(self) -> Expert:
        seen = yield from skills.open_table("Coupons")
        if self.old not in seen.page_text:
            seen = yield from click("Next page", "link")
        yield from skills.row_action(seen, rf"\| {self.old} \|", "Delete")
        yield from click("Confirm", "button")
        yield from skills.add_coupon(*self.coupon)

    def steps(self, data: AdminData) -> int:
        return 13 + list(data.coupons).index(self.old) // 5


class RefundAndMove(AboutOrder, name="admin.refund_and_move", horizon=14):
    intent = (
        "Refund ${amount} of order {number} with the reason {reason}, then move the customer {name} to the group "
        "{group}."
    )
    number: int = together(sampling.refund)
    reason: str
    amount: int
    name_: str = drawn(sampling.customer)
    group: str = drawn(sampling.other_group, "name")

    @property
    def refunded(self) -> str:
        return f": {self.reason}, ${self.amount}"

    def evaluation(self, data: AdminData) -> Evaluation:
        order, memo = changed_order(data, self.number, REFUNDED), includes(self.path, "#memo", self.refunded)
        return pages(record(*order), memo, record(*moved_customer(data, self.name_, self.group)))

    def milestones(self, data: AdminData) -> Milestones:
        customer, summary = moved_customer(data, self.name_, self.group)
        return (
            ("The order is open", at(f"{self.path}*")),
            ("The order is refunded", recorded(self.path, self.refunded)),
            ("The customer is open", at(f"{customer}*")),
            ("The customer is moved", recorded(customer, summary)),
        )

    def expert(self) -> Expert:
        yield from skills.open_order(self.number)
        yield from click("Credit memo", "link")
        yield from choose("Reason", self.reason)
        yield from write({"Refund": str(self.amount)})
        yield from click("Submit credit memo", "button")
        yield from skills.move_customer(self.name_, self.group)


class TwoProducts(TaskTemplate, name="admin.two_products", horizon=17):
    intent = (
        "Change the {first} to ${price} and {stock} in stock, and the {second} to ${other_price} "
        "and {other_stock} in stock."
    )
    first: str = together(sampling.two_products)
    price: int
    stock: int
    second: str
    other_price: int
    other_stock: int

    def saved(self, data: AdminData) -> list[tuple[str, str]]:
        """Return path and summary of both products as they shall be."""
        return [
            changed_product(data, self.first, price=self.price, stock=self.stock),
            changed_product(data, self.second, price=self.other_price, stock=self.other_stock),
        ]

    def evaluation(self, data: AdminData) -> Evaluation:
        return pages(*(record(*product) for product in self.saved(data)))

    def milestones(self, data: AdminData) -> Milestones:
        first, second = self.saved(data)
        return (
            ("The first product is open", at(first[0])),
            ("The first product is saved", recorded(*first)),
            ("The second product is open", at(second[0])),
            ("The second product is saved", recorded(*second)),
        )

    def expert(self) -> Expert:
        yield from skills.edit_product(self.first, {"Price": str(self.price), "Stock": str(self.stock)})
        yield from skills.edit_product(self.second, {"Price": str(self.other_price), "Stock": str(self.other_stock)})


class ShipThree(TaskTemplate, name="admin.ship_three", horizon=19):
    intent = (
        "Ship orders {first}, {second} and {third} by {carrier} with the tracking numbers {first_tracking}, "
        "{second_tracking} and {third_tracking}."
    )
    first: int = together(sampling.three_parcels)
    second: int
    third: int
    carrier: str
    first_tracking: str
    second_tracking: str
    third_tracking: str

    @property
    def parcels(self) -> dict[int, str]:
        """The tracking number of each order."""
        return {self.first: self.first_tracking, self.second: self.second_tracking, self.third: self.third_tracking}

    def evaluation(self, data: AdminData) -> Evaluation:
        targets = []
        for number, tracking in self.parcels.items():
            path, summary = changed_order(data, number, SHIPPED)
            targets += [record(path, summary), includes(path, "#shipment", shipped(self.carrier, tracking))]
        return pages(*targets)

    def milestones(self, data: AdminData) -> Milestones:
        first, second, third = (
            both(at(f"/orders/{number}"), skills.ship.reached(self.carrier, tracking))
            for number, tracking in self.parcels.items()
        )
        return (
            ("The first order is shipped", first),
            ("The second order is shipped", second),
            ("The third order is open", at(f"/orders/{self.third}*")),
            ("The third order is shipped", third),
        )

    def expert(self) -> Expert:
        for number, tracking in self.parcels.items():
            yield from skills.open_order(number)
            yield from skills.ship(self.carrier, tracking)


class Launch(NewCoupon, NewProduct, name="admin.launch", horizon=25):
    intent = (
        "Add the product {product} with the SKU {sku} to the {category}: ${price}, {stock} in stock. Add the coupon "
        "{name} with the code {code}: {percent} percent for the group {group} from {start} to {end}. Change the text "
        "of the page {page} to: {text}"
    )
    page: str = drawn(sampling.page)
    text: str = drawn(sampling.other_text, "page")

    def evaluation(self, data: AdminData) -> Evaluation:
        page = changed_page(data, self.page, text=self.text)
        return pages(*(record(*saved) for saved in (new_product(*self.item), new_coupon(*self.coupon), page)))

    def milestones(self, data: AdminData) -> Milestones:
        coupon = skills.add_coupon.reached(*self.coupon)
        return (
            ("The product is saved", skills.add_product.reached(*self.item)),
            ("The coupon's form is open", either(at("/coupons/new"), coupon)),
            ("The coupon is saved", coupon),
            ("The page is saved", recorded(*changed_page(data, self.page, text=self.text))),
        )

    def expert(self) -> Expert:
        yield from skills.add_product(*self.item)
        yield from skills.open_table("Coupons")
        yield from skills.add_coupon(*self.coupon)
        yield from skills.edit_page(self.page, "Text", self.text)
