"""Tasks in the catalogue: questions, lists, products, the cart. They teach the skills of the long ones."""

from __future__ import annotations

from dataclasses import field

from sites.checks import Evaluation, Milestones, acted, answer_including, both, either, has, shows
from sites.experts import Expert, read
from sites.shop import sampling, skills
from sites.shop.catalogue import mean_stars
from sites.shop.checks import at, cart_shows, ends_at, in_cart, product_path
from sites.shop.data import ShopData
from sites.shop.words import RANKS
from sites.skills import finish, search
from sites.task_template import TaskTemplate, drawn, one_of, together

SORTS = dict(RANKS.values())


class ProductFact(TaskTemplate, name="shop.product_fact", horizon=2):
    intent = "What is the {fact} of the {product}?"
    fact: str = one_of(("price", "rating"))
    product: str = drawn(sampling.product)

    def evaluation(self, data: ShopData) -> Evaluation:
        product = data.product(self.product)
        return answer_including(f"${product.price}" if self.fact == "price" else f"{mean_stars(product.reviews)}")

    def milestones(self, data: ShopData) -> Milestones:
        found = both(at("/search?*"), shows(self.product, "stars"))
        return (
            ("The search box was used", either(acted("search", "Search"), acted("type", "Search"))),
            ("Search results are shown", at("/search?*")),
            ("The product is listed", found),
            ("The product was searched for by name", both(found, has("Search", self.product))),
        )

    def expert(self) -> Expert:
        seen = yield from search(self.product)
        yield from finish(skills.listed(seen, self.product, self.fact), r"\$\d+" if self.fact == "price" else r"\d\.\d")


class CountKind(TaskTemplate, name="shop.count_kind", horizon=4):
    intent = "How many {category} of kind {kind} are there?"
    category: str = drawn(sampling.category)
    kind: str = drawn(sampling.kind, "category")

    def evaluation(self, data: ShopData) -> Evaluation:
        return answer_including(str(sum(p.kind == self.kind for p in data.category(self.category).products)))

    def milestones(self, data: ShopData) -> Milestones:
        page = f"/category/{self.category.lower()}"
        filtered = at(f"{page}?*kind={self.kind.lower()}*")
        return (
            ("A category is open", at("/category/*")),
            (f"{self.category} is open", at(f"{page}*")),
            ("The kind is chosen", either(filtered, has("Kind", self.kind))),
            ("The list is filtered", filtered),
        )

    def expert(self) -> Expert:
        seen = yield from skills.show_category(self.category, kind=self.kind)
        yield from finish(read(seen, r"(\d+) products"), r"\b\d\d?\b")


class SortCategory(TaskTemplate, name="shop.sort_category", horizon=4):
    intent = "Show the {category} sorted by {order}."
    category: str = drawn(sampling.category)
    kind: str = ""
    order: str = one_of(tuple(SORTS))

    def evaluation(self, data: ShopData) -> Evaluation:
        kind = f"kind={self.kind.lower()}&" if self.kind else ""
        return ends_at(f"/category/{self.category.lower()}?{kind}sort={SORTS[self.order]}")

    def milestones(self, data: ShopData) -> Milestones:
        page = f"/category/{self.category.lower()}"
        chosen = both(at(f"{page}*"), has("Sort by", self.order))
        return (
            ("A category is open", at("/category/*")),
            (f"{self.category} is open", at(f"{page}*")),
            ("The order is chosen", either(at(f"{page}?*sort={SORTS[self.order]}*"), chosen)),
            ("The list is as asked", skills.show_category.reached(self.category, self.order, self.kind)),
        )

    def expert(self) -> Expert:
        yield from skills.show_category(self.category, self.order, self.kind)


class FilterCategory(SortCategory, name="shop.filter_category", horizon=5, split="validation"):
    intent = "Show the {category} of kind {kind} sorted by {order}."
    kind: str = drawn(sampling.kind, "category")


class OpenProduct(TaskTemplate, name="shop.open_product", horizon=3):
    intent = "Open the page of the {product}."
    product: str = drawn(sampling.product)

    def evaluation(self, data: ShopData) -> Evaluation:
        return ends_at(product_path(self.product))

    def milestones(self, data: ShopData) -> Milestones:
        return (
            ("Search results are shown", either(at("/search?*"), at("/product/*"))),
            ("The product is listed", shows(self.product)),
            ("A product is open", at("/product/*")),
            ("The product is open", at(f"{product_path(self.product)}*")),
        )

    def expert(self) -> Expert:
        yield from skills.open_product(self.product)


class AddToCart(TaskTemplate, name="shop.add_to_cart", horizon=6):
    intent = "Put {quantity} of the {product} in {colour} in the cart."
    product: str = drawn(sampling.plain_product)
    colour: str = drawn(sampling.colour, "product")
    size: str = ""
    quantity: int = drawn(sampling.quantity)

    @property
    def variant(self) -> str:
        return ", ".join(part for part in (self.product, self.colour, self.size) if part)

    def evaluation(self, data: ShopData) -> Evaluation:
        return in_cart(self.variant, self.quantity)

    def milestones(self, data: ShopData) -> Milestones:
        option, value = ("Size", self.size) if self.size else ("Quantity", str(self.quantity))
        opened, done = (
            skills.open_product.reached(self.product),
            cart_shows(f"{self.variant}, $", f"Items: {self.quantity}"),
        )
        return (
            ("The product is open", opened),
            ("The colour is chosen", either(both(opened, has("Colour", self.colour)), done)),
            (f"The {option.lower()} is chosen", either(both(opened, has(option, value)), done)),
            ("The product is in the cart as asked", done),
        )

    def expert(self) -> Expert:
        yield from skills.open_product(self.product)
        yield from skills.add_to_cart(self.colour, self.size, self.quantity)


class AddSized(AddToCart, name="shop.add_sized", horizon=6):
    intent = "Put the {product} in {colour} and size {size} in the cart."
    product: str = drawn(sampling.sized_product)
    size: str = drawn(sampling.size, "product")
    quantity: int = 1


class AddRanked(TaskTemplate, name="shop.add_ranked", horizon=7):
    intent = "Put the {rank} of the {category} in {colour} in the cart."
    category: str = together(sampling.ranked)
    kind: str = ""
    rank: str
    colour: str = drawn(sampling.meant_colour, "category", "rank")

    def evaluation(self, data: ShopData) -> Evaluation:
        return in_cart(f"{sampling.meant(data, self.category, self.rank, self.kind).name}, {self.colour}")

    def milestones(self, data: ShopData) -> Milestones:
        name = sampling.meant(data, self.category, self.rank, self.kind).name
        listed = at(f"/category/{self.category.lower()}?*sort={RANKS[self.rank][1]}*")
        opened, done = skills.open_product.reached(name), cart_shows(f"{name}, {self.colour}")
        return (
            (f"{self.category} is sorted", either(listed, opened)),
            ("The right product is open", opened),
            ("The colour is chosen", either(both(opened, has("Colour", self.colour)), done)),
            ("The product is in the cart as asked", done),
        )

    def expert(self) -> Expert:
        yield from skills.open_ranked(self.category, self.rank, self.kind)
        yield from skills.add_to_cart(self.colour)


class AddRankedKind(AddRanked, name="shop.add_ranked_kind", horizon=8, split="test"):
    intent = "Put the {rank} of the {category} of kind {kind} in {colour} in the cart."
    category: str = together(sampling.ranked_kind)
    kind: str = field()
    colour: str = drawn(sampling.meant_colour, "category", "rank", "kind")
