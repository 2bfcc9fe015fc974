"""Task templates about the catalogue: questions, lists, products, the cart.

Owns the short tasks that teach the skills which the long ones are made of.
"""

from __future__ import annotations

import random
import re

from records.episodes import Task
from sites import checks
from sites.experts import read
from sites.shop import checks as c
from sites.shop import experts, sampling
from sites.shop.catalogue import mean_stars
from sites.shop.data import ShopData
from sites.task_template import Expert, Parameters, TaskTemplate


def _sample_fact(data: ShopData, rng: random.Random) -> Parameters:
    return {"fact": rng.choice(("price", "rating")), "product": sampling.product(data, rng).name}


def _judge_fact(p: Parameters, data: ShopData) -> checks.Evaluation:
    product = data.products[p["product"].lower().replace(" ", "-")]
    return checks.answer_including(f"${product.price}" if p["fact"] == "price" else f"{mean_stars(product.reviews)}")


def _fact_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    found = checks.both(c.at("/search?*"), checks.shows(p["product"], "stars"))
    return checks.milestones(
        ("The search box was used", checks.either(checks.acted("search", "Search"), checks.acted("type", "Search"))),
        ("Search results are shown", c.at("/search?*")),
        ("The product is listed", found),
        ("The product was searched for by name", checks.both(found, checks.has("Search", p["product"]))),
    )


def _find_fact(task: Task) -> Expert:
    name = task.parameters["product"]
    seen = yield from experts.search_for(name)
    fact = re.search(rf"{name} (?P<price>\$\d+), (?P<rating>\d\.\d) stars", seen.page_text)
    if fact is None:
        raise LookupError(f"expected {name!r} in the search results, found {seen.page_text!r}")
    rivals = r"\$\d+" if task.parameters["fact"] == "price" else r"\d\.\d"
    yield from experts.finish(fact[task.parameters["fact"]], rivals)


def _sample_kind(data: ShopData, rng: random.Random) -> Parameters:
    category = sampling.category(data, rng)
    return {"category": category.name, "kind": rng.choice(category.kinds)}


def _judge_count(p: Parameters, data: ShopData) -> checks.Evaluation:
    products = data.categories[p["category"].lower()].products
    return checks.answer_including(str(sum(product.kind == p["kind"] for product in products)))


def _kind_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    page = f"/category/{p['category'].lower()}"
    filtered = c.at(f"{page}?*kind={p['kind'].lower()}*")
    return checks.milestones(
        ("A category is open", c.at("/category/*")),
        (f"{p['category']} is open", c.at(f"{page}*")),
        ("The kind is chosen", checks.either(filtered, checks.has("Kind", p["kind"]))),
        ("The list is filtered", filtered),
    )


def _count(task: Task) -> Expert:
    seen = yield from experts.open_category(task.parameters["category"], kind=task.parameters["kind"])
    yield from experts.finish(read(seen, r"(\d+) products"), r"\b\d\d?\b")


def _sample_sort(data: ShopData, rng: random.Random) -> Parameters:
    return {"category": sampling.category(data, rng).name, "order": rng.choice(tuple(sampling.RANKS.values()))[0]}


def _sample_filter(data: ShopData, rng: random.Random) -> Parameters:
    return {**_sample_kind(data, rng), "order": rng.choice(tuple(sampling.RANKS.values()))[0]}


def _list_address(p: Parameters) -> str:
    sort = {label: value for label, value in sampling.RANKS.values()}[p["order"]]
    kind = f"kind={p['kind'].lower()}&" if "kind" in p else ""
    return f"/category/{p['category'].lower()}?{kind}sort={sort}"


def _judge_list(p: Parameters, data: ShopData) -> checks.Evaluation:
    return c.ends_at(_list_address(p))


def _list_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    page = f"/category/{p['category'].lower()}"
    address, _, query = _list_address(p).partition("?")
    wanted = checks.both(*(c.at(f"{address}?*{part}*") for part in query.split("&")))
    sorted_right = c.at(f"{page}?*{query.split('&')[-1]}*")
    chosen = checks.has("Sort by", p["order"])
    return checks.milestones(
        ("A category is open", c.at("/category/*")),
        (f"{p['category']} is open", c.at(f"{page}*")),
        ("The order is chosen", checks.either(sorted_right, checks.both(c.at(f"{page}*"), chosen))),
        ("The list is as asked", wanted),
    )


def _show_list(task: Task) -> Expert:
    p = task.parameters
    yield from experts.open_category(p["category"], p["order"], p.get("kind", ""))
    yield from experts.finish()


def _sample_product(data: ShopData, rng: random.Random) -> Parameters:
    return {"product": sampling.product(data, rng).name}


def product_path(name: str) -> str:
    """Return the path of the product of this name."""
    return f"/product/{name.lower().replace(' ', '-')}"


def _judge_open(p: Parameters, data: ShopData) -> checks.Evaluation:
    return c.ends_at(product_path(p["product"]))


def _open_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    return checks.milestones(
        ("Search results are shown", checks.either(c.at("/search?*"), c.at("/product/*"))),
        ("The product is listed", checks.shows(p["product"])),
        ("A product is open", c.at("/product/*")),
        ("The product is open", c.at(f"{product_path(p['product'])}*")),
    )


def _open(task: Task) -> Expert:
    yield from experts.open_product(task.parameters["product"])
    yield from experts.finish()


def _sample_add(data: ShopData, rng: random.Random) -> Parameters:
    product = sampling.product(data, rng, sized=False)
    return {"product": product.name, "colour": sampling.colour(product, rng), "quantity": sampling.quantity(rng)}


def _sample_add_sized(data: ShopData, rng: random.Random) -> Parameters:
    product = sampling.product(data, rng, sized=True)
    return {"product": product.name, "colour": sampling.colour(product, rng), "size": sampling.size(product, rng)}


def _variant(p: Parameters) -> str:
    return ", ".join(part for part in (p["product"], p["colour"], p.get("size", "")) if part)


def _judge_add(p: Parameters, data: ShopData) -> checks.Evaluation:
    return c.in_cart(_variant(p), p.get("quantity", 1))


def _add_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    path = product_path(p["product"])
    option = ("Size", p["size"]) if "size" in p else ("Quantity", str(p["quantity"]))
    in_cart = checks.both(c.at("/cart"), checks.shows(f"{_variant(p)}, $", f"Items: {p.get('quantity', 1)}"))
    return checks.milestones(
        ("The product is open", c.at(path)),
        (
            "The colour is chosen",
            checks.either(checks.both(c.at(path), checks.has("Colour", p["colour"])), in_cart),
        ),
        (
            f"The {option[0].lower()} is chosen",
            checks.either(checks.both(c.at(path), checks.has(*option)), in_cart),
        ),
        ("The product is in the cart as asked", in_cart),
    )


def _add(task: Task) -> Expert:
    p = task.parameters
    yield from experts.open_product(p["product"])
    yield from experts.add_to_cart(p["colour"], p.get("size", ""), p.get("quantity", 1))
    yield from experts.finish()


def sample_ranked(data: ShopData, rng: random.Random) -> Parameters:
    """Return parameters that mean one product by category and rank, and one of its colours."""
    p = sampling.ranked(data, rng)
    del p["kind"]
    return {**p, "colour": sampling.colour(sampling.meant(data, p), rng)}


def _sample_ranked_kind(data: ShopData, rng: random.Random) -> Parameters:
    p = sampling.ranked(data, rng, with_kind=True)
    return {**p, "colour": sampling.colour(sampling.meant(data, p), rng)}


def _judge_ranked(p: Parameters, data: ShopData) -> checks.Evaluation:
    return c.in_cart(f"{sampling.meant(data, p).name}, {p['colour']}")


def _ranked_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    name = sampling.meant(data, p).name
    page, sort = f"/category/{p['category'].lower()}", sampling.RANKS[p["rank"]][1]
    path = product_path(name)
    in_cart = checks.both(c.at("/cart"), checks.shows(f"{name}, {p['colour']}"))
    colour = checks.both(c.at(path), checks.has("Colour", p["colour"]))
    return checks.milestones(
        (f"{p['category']} is sorted", checks.either(c.at(f"{page}?*sort={sort}*"), c.at(path))),
        ("The right product is open", c.at(path)),
        ("The colour is chosen", checks.either(colour, in_cart)),
        ("The product is in the cart as asked", in_cart),
    )


def open_ranked(p: Parameters) -> experts.Skill:
    """Open the product that category, kind and rank mean."""
    seen = yield from experts.open_category(p["category"], sampling.RANKS[p["rank"]][0], p.get("kind", ""))
    return (yield from experts.open_first(seen))


def _add_ranked(task: Task) -> Expert:
    yield from open_ranked(task.parameters)
    yield from experts.add_to_cart(task.parameters["colour"])
    yield from experts.finish()


PRODUCT_FACT = TaskTemplate(
    name="shop.product_fact",
    site="shop",
    intent="What is the {fact} of the {product}?",
    sample=_sample_fact,
    evaluation=_judge_fact,
    milestones=_fact_milestones,
    expert=_find_fact,
    horizon=2,
)
COUNT_KIND = TaskTemplate(
    name="shop.count_kind",
    site="shop",
    intent="How many {category} of kind {kind} are there?",
    sample=_sample_kind,
    evaluation=_judge_count,
    milestones=_kind_milestones,
    expert=_count,
    horizon=4,
)
SORT_CATEGORY = TaskTemplate(
    name="shop.sort_category",
    site="shop",
    intent="Show the {category} sorted by {order}.",
    sample=_sample_sort,
    evaluation=_judge_list,
    milestones=_list_milestones,
    expert=_show_list,
    horizon=4,
)
FILTER_CATEGORY = TaskTemplate(
    name="shop.filter_category",
    site="shop",
    intent="Show the {category} of kind {kind} sorted by {order}.",
    sample=_sample_filter,
    evaluation=_judge_list,
    milestones=_list_milestones,
    expert=_show_list,
    horizon=5,
    split="validation",
)
OPEN_PRODUCT = TaskTemplate(
    name="shop.open_product",
    site="shop",
    intent="Open the page of the {product}.",
    sample=_sample_product,
    evaluation=_judge_open,
    milestones=_open_milestones,
    expert=_open,
    horizon=3,
)
ADD_TO_CART = TaskTemplate(
    name="shop.add_to_cart",
    site="shop",
    intent="Put {quantity} of the {product} in {colour} in the cart.",
    sample=_sample_add,
    evaluation=_judge_add,
    milestones=_add_milestones,
    expert=_add,
    horizon=6,
)
ADD_SIZED = TaskTemplate(
    name="shop.add_sized",
    site="shop",
    intent="Put the {product} in {colour} and size {size} in the cart.",
    sample=_sample_add_sized,
    evaluation=_judge_add,
    milestones=_add_milestones,
    expert=_add,
    horizon=6,
)
ADD_RANKED = TaskTemplate(
    name="shop.add_ranked",
    site="shop",
    intent="Put the {rank} of the {category} in {colour} in the cart.",
    sample=sample_ranked,
    evaluation=_judge_ranked,
    milestones=_ranked_milestones,
    expert=_add_ranked,
    horizon=7,
)
ADD_RANKED_KIND = TaskTemplate(
    name="shop.add_ranked_kind",
    site="shop",
    intent="Put the {rank} of the {category} of kind {kind} in {colour} in the cart.",
    sample=_sample_ranked_kind,
    evaluation=_judge_ranked,
    milestones=_ranked_milestones,
    expert=_add_ranked,
    horizon=8,
    split="test",
)
TEMPLATES = (
    PRODUCT_FACT,
    COUNT_KIND,
    SORT_CATEGORY,
    FILTER_CATEGORY,
    OPEN_PRODUCT,
    ADD_TO_CART,
    ADD_SIZED,
    ADD_RANKED,
    ADD_RANKED_KIND,
)
"""Templates about the catalogue."""
