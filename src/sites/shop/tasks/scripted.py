"""Tasks on pages with scripts: suggestions, a menu that opens on hover, late stock, a question.

Their experts hover, wait and confirm, so they need a browser; their pages are reached from the finder only.
"""

from __future__ import annotations

import random
import re
from typing import Self
from urllib.parse import urlencode

from sites.checks import (
    UNANSWERABLE,
    Evaluation,
    Milestones,
    Step,
    acted,
    answer_including,
    both,
    either,
    has,
    pages,
    shows,
)
from sites.experts import Actions, Expert, Intent
from sites.shop import sampling, skills
from sites.shop.catalogue_pages import SORT_ORDERS
from sites.shop.checks import at, ends_at, equals, wished
from sites.shop.data import CITIES, LABELS, ShopData
from sites.shop.finder_pages import WAREHOUSES, stock_by_warehouse, suggestions
from sites.skills import choose, click, finish, noting, put, skill
from sites.task_template import TaskTemplate, drawn, one_of

_ORDERS = {label.lower(): key for key, label in SORT_ORDERS.items() if key != "popular"}


def _start(name: str) -> str:
    """What is typed of a name: all words but the last, which the suggestions then differ in."""
    return name.rsplit(" ", 1)[0]


def _findable(data: ShopData, rng: random.Random) -> str:
    """Draw a product in stock that is suggested for the first words of its name, among others."""
    while True:
        name = sampling.product(data, rng)
        offered = suggestions(data.products, _start(name))
        if name in offered and len(offered) > 1:
            return name


def _finder_path(name: str) -> str:
    return f"/finder?{urlencode({'name': name})}"


@skill(lambda name: at(_finder_path(name)))
def find(name: str) -> Actions:
    """On the finder: type the first words, take the suggestion, and show the product."""
    yield from put("Product", _start(name))
    yield from click(name, "button", skills.PRODUCT)
    return (yield from click("Show", "button"))


@skill(lambda name: both(find.reached(name), shows(*(f"{city}: " for city in WAREHOUSES))))
def find_stock(name: str) -> Actions:
    """Show a product in the finder and wait until the warehouses have answered."""
    yield from find(name)
    return (yield Intent("wait"))


def _pieces(text: str, city: str) -> str:
    """Return how many pieces the warehouse of a city is said to have, and that it is none where nothing is said."""
    found = re.search(rf"{city}: (\d+) pieces", text)
    return found[1] if found else UNANSWERABLE


def _finding(name: str, last: Step) -> Milestones:
    typed, chosen, shown = has("Product", _start(name)), has("Product", name), find.reached(name)
    return (
        ("The first words are typed", either(typed, chosen, shown)),
        ("The product is chosen from the list", either(chosen, shown)),
        ("The product is shown", shown),
        last,
    )


class _Scripted(TaskTemplate):
    start = "/finder"
    scripted = True


class ShowSuggested(_Scripted, name="shop.show_suggested", horizon=4):
    intent = "Show the {product} in the product finder."
    product: str = drawn(_findable)

    def evaluation(self, data: ShopData) -> Evaluation:
        return ends_at(_finder_path(self.product))

    def milestones(self, data: ShopData) -> Milestones:
        return _finding(self.product, ("Its price is shown", both(find.reached(self.product), shows("Stock"))))

    def expert(self) -> Expert:
        yield from find(self.product)


class OpenDepartment(_Scripted, name="shop.open_department", horizon=5):
    intent = "Open the {category} from the menu of departments and sort them by {order}."
    category: str = drawn(sampling.category)
    order: str = one_of(sorted(_ORDERS))

    def evaluation(self, data: ShopData) -> Evaluation:
        return ends_at(f"/category/{self.category.lower()}?kind=&sort={_ORDERS[self.order]}")

    def milestones(self, data: ShopData) -> Milestones:
        page = at(f"/category/{self.category.lower()}*")
        done = at(f"/category/{self.category.lower()}?*sort={_ORDERS[self.order]}*")
        return (
            ("The menu was opened", either(acted("hover", "Departments"), page)),
            ("The department is open", page),
            ("The order is chosen", either(both(page, has("Sort by", self.order.capitalize())), done)),
            ("The department is sorted", done),
        )

    def expert(self) -> Expert:
        yield Intent("hover", "Departments", "button")
        yield from click(self.category, "link", "[A-Z][a-z]+s")
        yield from choose("Sort by", self.order.capitalize())
        yield from click("Apply", "button")


class WarehouseStock(_Scripted, name="shop.warehouse_stock", horizon=5):
    intent = "How many pieces of the {product} are in the warehouse of {city}?"
    product: str = drawn(_findable)
    city: str = one_of(WAREHOUSES)

    def evaluation(self, data: ShopData) -> Evaluation:
        return answer_including(str(stock_by_warehouse(data.product(self.product)).get(self.city, UNANSWERABLE)))

    def milestones(self, data: ShopData) -> Milestones:
        return _finding(self.product, ("The warehouses have answered", find_stock.reached(self.product)))

    def expert(self) -> Expert:
        seen = yield from find_stock(self.product)
        yield from finish(_pieces(seen.page_text, self.city), r"(?<=: )\d+(?= pieces)")


class NoSuchWarehouse(WarehouseStock, name="shop.no_such_warehouse", horizon=5, split="test"):
    intent = "How many pieces of the {product} are in the warehouse of {city}? Answer N/A if that cannot be known."
    city: str = one_of([city for city in CITIES if city not in WAREHOUSES])


class DeleteAddress(_Scripted, name="shop.delete_address", horizon=4):
    intent = "Delete the address {label} from the address book."
    label: str = drawn(sampling.address)

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(equals("/address-book", "#labels", ", ".join(label for label in LABELS if label != self.label)))

    def milestones(self, data: ShopData) -> Milestones:
        book = at("/address-book")
        asked = both(book, acted("click", f"Delete {self.label}"))
        return (
            ("The address book is open", book),
            ("Deleting is asked for", asked),
            ("The question is answered", both(asked, acted("click", "Confirm"))),
            ("The address is deleted", both(book, shows(f"Deleted {self.label}"))),
        )

    def expert(self) -> Expert:
        yield from click("Address book", "link")
        yield from click(f"Delete {self.label}", "button", "Delete .*")
        yield from click("Confirm", "button")


class WishWhatIsThere(_Scripted, name="shop.wish_what_is_there", split="validation"):
    intent = "Put the {first} or the {second} on the wish list, whichever the warehouse of {city} has more of."
    first: str
    second: str
    city: str

    @classmethod
    def sample(cls, data: ShopData, rng: random.Random) -> Self:
        wishes = {product.name for product in data.usual.wishes}
        while True:
            first, second, city = _findable(data, rng), _findable(data, rng), rng.choice(WAREHOUSES)
            pieces = [stock_by_warehouse(data.product(name))[city] for name in (first, second)]
            if first != second and pieces[0] != pieces[1] and not wishes & {first, second}:
                return cls(first=first, second=second, city=city)

    def more(self, data: ShopData) -> str:
        """Return which of the two products the warehouse has more of."""
        return max((self.first, self.second), key=lambda name: stock_by_warehouse(data.product(name))[self.city])

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(wished(self.more(data)))

    def milestones(self, data: ShopData) -> Milestones:
        return (
            ("The stock of the first product is seen", find_stock.reached(self.first)),
            ("The stock of the second product is seen", find_stock.reached(self.second)),
            ("The product with more pieces is open", skills.open_product.reached(self.more(data))),
            ("It is on the wish list", skills.wish.reached(self.more(data))),
        )

    def expert(self) -> Expert:
        seen = yield from find_stock(self.first)
        first = int(_pieces(seen.page_text, self.city))
        yield from noting(f"{self.first} {first}", click("Finder", "link"))
        seen = yield from find_stock(self.second)
        if first > int(_pieces(seen.page_text, self.city)):
            yield from click("Finder", "link")
            yield from find(self.first)
        yield from click("Product page", "link")
        yield from click("Add to wish list", "button")

    def steps(self, data: ShopData) -> int:
        return 12 if self.more(data) == self.second else 16
