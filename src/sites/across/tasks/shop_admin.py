"""Tasks over the shop and its back office, whose products and orders are the same."""

from __future__ import annotations

import random
from dataclasses import replace

from sites.across.skills import Data, found_in_shop, go_to, on, two_of_different_price
from sites.admin import checks as office
from sites.admin import skills as managing
from sites.admin.data import slug_of
from sites.checks import Evaluation, Milestones, both, either, has, pages
from sites.experts import Expert, read
from sites.forum import checks as forum
from sites.forum import sampling as topics
from sites.forum import skills as posting
from sites.skills import noting, search
from sites.task_template import TaskTemplate, drawn, together


def _shipped(data: Data, rng: random.Random) -> int:
    return rng.choice([order.number for order in data["admin"].orders.values() if order.shipment])


class SendTracking(TaskTemplate, name="across.send_tracking", horizon=9):
    sites = ("admin", "forum")
    intent = "Send the forum user {user} a message with the tracking number of order {number} from the back office."
    number: int = drawn(_shipped)
    user: str = drawn(on("forum", topics.user))

    def tracking(self, data: Data) -> str:
        found: str = data["admin"].orders[self.number].shipment.tracking
        return found

    def evaluation(self, data: Data) -> Evaluation:
        return pages(forum.messaged(self.user, self.tracking(data)))

    def milestones(self, data: Data) -> Milestones:
        return (
            ("open the order", office.at(f"/orders/{self.number}")),
            ("open the user", forum.at(f"/user/{self.user}*")),
            *posting.messaging(self.user, self.tracking(data)),
        )

    def expert(self) -> Expert:
        seen = yield from managing.open_order(self.number)
        tracking = read(seen, r"tracking ([A-Z]{2}\d{5})")
        yield from noting(tracking, go_to("forum"))
        yield from posting.open_user(self.user)
        yield from posting.send_message(tracking)


class SetSamePrice(TaskTemplate, name="across.set_same_price", horizon=10, split="validation"):
    sites = ("shop", "admin")
    intent = "In the back office, give the {first} the price that the {second} has in the shop."
    first: str = together(two_of_different_price)
    second: str

    @property
    def form(self) -> str:
        return f"/products/{slug_of(self.first)}"

    def priced(self, data: Data) -> str:
        price = data["shop"].product(self.second).price
        summary: str = replace(data["admin"].products[slug_of(self.first)], price=price).summary
        return summary

    def evaluation(self, data: Data) -> Evaluation:
        return pages(office.record(self.form, self.priced(data)))

    def milestones(self, data: Data) -> Milestones:
        price, done = str(data["shop"].product(self.second).price), office.recorded(self.form, self.priced(data))
        return (
            ("The price is found", found_in_shop(self.second)),
            ("The other product is open in the back office", office.at(self.form)),
            ("The price is written", either(both(office.at(self.form), has("Price", price)), done)),
            ("The product is saved", done),
        )

    def expert(self) -> Expert:
        seen = yield from search(self.second)
        price = read(seen, rf"{self.second} \$(\d+),")
        yield from noting(price, go_to("admin"))
        yield from managing.edit_product(self.first, {"Price": price})
