"""Errands that end with a placed order: several products, comparisons, somebody else's account.

Owns templates of the collection ``errands`` (see ``sites.collections``); their pieces are the skills and checks
of the shop's other templates.
"""

from __future__ import annotations

import random

from records.environment import Observation
from records.episodes import Task
from sites import checks
from sites.experts import read
from sites.shop import checks as c
from sites.shop import experts, sampling
from sites.shop.catalogue import mean_stars
from sites.shop.data import LABELS, ShopData
from sites.shop.tasks_buying import checkout_milestones, filled
from sites.shop.tasks_catalogue import open_ranked, sample_ranked
from sites.task_template import Expert, Parameters, TaskTemplate, noting

_OTHER = ("category", "kind", "rank", "colour")


def _delivery(rng: random.Random) -> Parameters:
    return {"address": sampling.address(rng), "shipping": sampling.shipping(rng)}


def _sample_variants(data: ShopData, rng: random.Random) -> Parameters:
    first, second = sampling.product(data, rng, sized=False), sampling.product(data, rng, sized=True)
    return {
        "quantity": sampling.quantity(rng),
        "first": first.name,
        "first_colour": sampling.colour(first, rng),
        "second": second.name,
        "second_colour": sampling.colour(second, rng),
        "size": sampling.size(second, rng),
        **_delivery(rng),
    }


def _judge_variants(p: Parameters, data: ShopData) -> checks.Evaluation:
    lines = (f"{p['quantity']} x {p['first']}, {p['first_colour']}", f"1 x {_second_variant(p)}")
    return c.ordered(*lines, items=p["quantity"] + 1, address=p["address"], shipping=p["shipping"])


def _second_variant(p: Parameters) -> str:
    return f"{p['second']}, {p['second_colour']}, {p['size']}"


def _variants_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    ready = filled(f"{p['first']}, {p['first_colour']}", _second_variant(p), f"Items: {p['quantity'] + 1}")
    return checkout_milestones(ready, p)


def _buy_variants(task: Task) -> Expert:
    p = task.parameters
    yield from experts.open_product(p["first"])
    yield from experts.add_to_cart(p["first_colour"], quantity=p["quantity"])
    yield from experts.open_product(p["second"])
    yield from experts.add_to_cart(p["second_colour"], p["size"])
    yield from experts.check_out(p["address"], p["shipping"])
    yield from experts.finish()


def _sample_compared(data: ShopData, rng: random.Random) -> Parameters:
    while True:
        first, second = rng.sample(sampling.category(data, rng).products, 2)
        if first.stock and second.stock and mean_stars(first.reviews) != mean_stars(second.reviews):
            colour = sampling.colour(first, rng)
            return {"first": first.name, "second": second.name, "colour": colour, **_delivery(rng)}


def _better(p: Parameters, data: ShopData) -> str:
    def stars(name: str) -> float:
        return mean_stars(data.products[name.lower().replace(" ", "-")].reviews)

    names: tuple[str, str] = (p["first"], p["second"])
    return max(names, key=stars)


def _judge_compared(p: Parameters, data: ShopData) -> checks.Evaluation:
    line = f"1 x {_better(p, data)}, {p['colour']}"
    return c.ordered(line, items=1, address=p["address"], shipping=p["shipping"])


def _stars(seen: Observation, name: str) -> float:
    """Return how many stars a product has in the search results."""
    return float(read(seen, rf"{name} \$\d+, (\d\.\d) stars"))


def _buy_better(task: Task) -> Expert:
    p = task.parameters
    seen = yield from experts.search_for(p["first"])
    first = _stars(seen, p["first"])
    seen = yield from noting(f"{p['first']} {first}", experts.search_for(p["second"]))
    better = p["first"] if first > _stars(seen, p["second"]) else p["second"]
    if better == p["first"]:
        yield from experts.search_for(better)
    yield from experts.click(better, "link", experts.PRODUCT)
    yield from experts.add_to_cart(p["colour"])
    yield from experts.check_out(p["address"], p["shipping"])
    yield from experts.finish()


def _first_of_one_order(p: Parameters, data: ShopData) -> bool:
    """Whether the meant product comes first in no other order, so that the wrong order shows another one."""
    chosen, kind = data.categories[p["category"].lower()], p.get("kind", "")
    by_popularity = next(product for product in chosen.products if kind in ("", product.kind))
    others = [sampling.in_rank(chosen, kind, rank)[0] for rank in sampling.RANKS if rank != p["rank"]]
    return sampling.meant(data, p) not in (by_popularity, *others)


def _sample_two_ranked(data: ShopData, rng: random.Random) -> Parameters:
    while True:
        p, other = sampling.ranked(data, rng, with_kind=True), sample_ranked(data, rng)
        if p["category"] != other["category"] and all(_first_of_one_order(q, data) for q in (p, other)):
            break
    return {
        **p,
        "colour": sampling.colour(sampling.meant(data, p), rng),
        **{f"other_{name}": value for name, value in other.items()},
        "shipping": sampling.shipping(rng),
    }


def _other(p: Parameters) -> Parameters:
    """The second of the two products, in the parameters' names of the first."""
    return {name: p[f"other_{name}"] for name in _OTHER if f"other_{name}" in p}


def _two_variants(p: Parameters, data: ShopData) -> tuple[str, str]:
    one, other = (f"{sampling.meant(data, q).name}, {q['colour']}" for q in (p, _other(p)))
    return one, other


def _judge_two_ranked(p: Parameters, data: ShopData) -> checks.Evaluation:
    lines = (f"1 x {variant}" for variant in _two_variants(p, data))
    return c.ordered(*lines, items=2, shipping=p["shipping"])


def _buy_two_ranked(task: Task) -> Expert:
    p = task.parameters
    yield from open_ranked(p)
    yield from experts.add_to_cart(p["colour"])
    yield from experts.click("Home", "link")
    yield from open_ranked(_other(p))
    yield from experts.add_to_cart(p["other_colour"])
    yield from experts.check_out(shipping=p["shipping"])
    yield from experts.finish()


def _sample_wishes(data: ShopData, rng: random.Random) -> Parameters:
    first, second = rng.sample(data.usual.wishes, 2)
    return {"quantity": sampling.quantity(rng), "first": first.name, "second": second.name, **_delivery(rng)}


def _judge_wishes(p: Parameters, data: ShopData) -> checks.Evaluation:
    lines = (f"{p['quantity']} x {p['first']}", f"1 x {p['second']}")
    return c.ordered(*lines, items=p["quantity"] + 1, address=p["address"], shipping=p["shipping"])


def _order_wishes(task: Task) -> Expert:
    p = task.parameters
    for name in (p["first"], p["second"]):
        yield from experts.click("Wish list", "link")
        yield from experts.click(f"Move {name}", "button", rf"Move {experts.PRODUCT}")
    # What was moved first is the first line, and its field and button the first of their names.
    yield from experts.write({"Quantity": str(p["quantity"])})
    yield from experts.click("Update", "button")
    yield from experts.check_out(p["address"], p["shipping"])
    yield from experts.finish()


def _sample_log_in(data: ShopData, rng: random.Random) -> Parameters:
    person = rng.choice([account for account in data.accounts.values() if account is not data.usual])
    product = sampling.product(data, rng)
    return {
        "email": person.email,
        "password": person.password,
        "product": product.name,
        "colour": sampling.colour(product, rng),
        "address": LABELS[1],
        "shipping": sampling.shipping(rng),
    }


def _judge_log_in(p: Parameters, data: ShopData) -> checks.Evaluation:
    line = f"1 x {p['product']}, {p['colour']}"
    name = data.accounts[p["email"]].name
    order = c.newest_order(line, items=1, address=p["address"], shipping=p["shipping"])
    return checks.pages(*order, c.equals("/account", "#name", name))


def _log_in_and_buy(task: Task) -> Expert:
    p = task.parameters
    yield from experts.click("Log in", "link")
    yield from experts.write({"Email": p["email"], "Password": p["password"]})
    yield from experts.click("Log in", "button")
    yield from experts.open_product(p["product"])
    yield from experts.add_to_cart(p["colour"])
    yield from experts.check_out(p["address"], p["shipping"])
    yield from experts.finish()


TEMPLATES = (
    TaskTemplate(
        name="shop.buy_variants",
        site="shop",
        intent="Buy {quantity} of the {first} in {first_colour} and the {second} in {second_colour} and size {size}. "
        "Deliver them to {address} with {shipping} shipping.",
        sample=_sample_variants,
        evaluation=_judge_variants,
        milestones=_variants_milestones,
        expert=_buy_variants,
        horizon=17,
    ),
    TaskTemplate(
        name="shop.buy_better_rated",
        site="shop",
        intent="Buy the {first} or the {second}, whichever has more stars, in {colour}. Deliver it to {address} with "
        "{shipping} shipping.",
        sample=_sample_compared,
        evaluation=_judge_compared,
        milestones=lambda p, d: checkout_milestones(filled(f"{_better(p, d)}, {p['colour']}", "Items: 1"), p),
        expert=_buy_better,
        horizon=lambda p, d: 12 if _better(p, d) == p["second"] else 13,
    ),
    TaskTemplate(
        name="shop.buy_two_ranked",
        site="shop",
        intent="Buy the {rank} of the {category} of kind {kind} in {colour} and the {other_rank} of the "
        "{other_category} in {other_colour} with {shipping} shipping.",
        sample=_sample_two_ranked,
        evaluation=_judge_two_ranked,
        milestones=lambda p, d: checkout_milestones(filled(*_two_variants(p, d), "Items: 2"), p),
        expert=_buy_two_ranked,
        horizon=20,
        split="test",
    ),
    TaskTemplate(
        name="shop.order_wishes",
        site="shop",
        intent="Order {quantity} of the {first} and one of the {second} from the wish list. Deliver them to {address} "
        "with {shipping} shipping.",
        sample=_sample_wishes,
        evaluation=_judge_wishes,
        milestones=lambda p, d: checkout_milestones(filled(p["first"], p["second"], f"Items: {p['quantity'] + 1}"), p),
        expert=_order_wishes,
        horizon=13,
    ),
    TaskTemplate(
        name="shop.log_in_and_buy",
        site="shop",
        intent="Log in as {email} with password {password} and buy the {product} in {colour}. Deliver it to {address} "
        "with {shipping} shipping.",
        sample=_sample_log_in,
        evaluation=_judge_log_in,
        milestones=lambda p, d: checkout_milestones(filled(f"{p['product']}, {p['colour']}", "Items: 1"), p),
        expert=_log_in_and_buy,
        horizon=15,
        require_login=False,
    ),
)
"""Errands that end with a placed order."""
