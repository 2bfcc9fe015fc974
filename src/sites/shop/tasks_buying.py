"""Task templates that end with a placed order: the shop's long tasks."""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.shop import checks as c
from sites.shop import experts, sampling
from sites.shop.data import DELIVERED, ShopData
from sites.shop.tasks_catalogue import open_ranked, sample_ranked
from sites.task_template import Expert, Parameters, TaskTemplate


def _delivery(rng: random.Random) -> Parameters:
    return {"address": sampling.address(rng), "shipping": sampling.shipping(rng)}


def checkout_milestones(ready: checks.Check, p: Parameters) -> checks.Milestones:
    """From a filled cart to the placed order; ``ready`` says that the cart is as asked."""
    where = checks.shows(f"Deliver to {p['address']}") if "address" in p else checks.shows("Deliver to")
    addressed = checks.both(c.at("/checkout/*"), where)
    shipped = checks.both(c.at("/checkout/payment"), checks.shows(p["shipping"]))
    placed = c.at("/checkout/placed/*")
    return checks.milestones(
        ("The cart is as asked", ready),
        ("The address is chosen", addressed),
        ("The shipping method is chosen", shipped),
        ("The order is placed", placed),
    )


def filled(*texts: str) -> checks.Check:
    """The cart is open and says all of this."""
    return checks.both(c.at("/cart"), checks.shows(*texts))


def _sample_buy(data: ShopData, rng: random.Random) -> Parameters:
    product = sampling.product(data, rng)
    return {"product": product.name, "colour": sampling.colour(product, rng), **_delivery(rng)}


def _judge_buy(p: Parameters, data: ShopData) -> checks.Evaluation:
    line = f"1 x {p['product']}, {p['colour']}"
    return c.ordered(line, items=1, address=p["address"], shipping=p["shipping"])


def _buy_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    return checkout_milestones(filled(f"{p['product']}, {p['colour']}", "Items: 1"), p)


def _buy(task: Task) -> Expert:
    p = task.parameters
    yield from experts.open_product(p["product"])
    yield from experts.add_to_cart(p["colour"])
    yield from experts.check_out(p["address"], p["shipping"])
    yield from experts.finish()


def _sample_buy_ranked(data: ShopData, rng: random.Random) -> Parameters:
    return {**sample_ranked(data, rng), **_delivery(rng)}


def _judge_buy_ranked(p: Parameters, data: ShopData) -> checks.Evaluation:
    return _judge_buy({**p, "product": sampling.meant(data, p).name}, data)


def _buy_ranked_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    return _buy_milestones({**p, "product": sampling.meant(data, p).name}, data)


def _buy_ranked(task: Task) -> Expert:
    p = task.parameters
    yield from open_ranked(p)
    yield from experts.add_to_cart(p["colour"])
    yield from experts.check_out(p["address"], p["shipping"])
    yield from experts.finish()


def _sample_buy_two(data: ShopData, rng: random.Random) -> Parameters:
    first = sampling.product(data, rng)
    second = sampling.product(data, rng)
    while second is first:
        second = sampling.product(data, rng)
    return {"first": first.name, "second": second.name, "shipping": sampling.shipping(rng)}


def _judge_buy_two(p: Parameters, data: ShopData) -> checks.Evaluation:
    return c.ordered(f"1 x {p['first']}", f"1 x {p['second']}", items=2, shipping=p["shipping"])


def _buy_two_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    paid = checks.both(c.at("/checkout/payment"), checks.shows(p["shipping"], p["first"], p["second"]))
    one = checks.either(filled(p["first"]), filled(p["second"]))
    return checks.milestones(
        ("One product is in the cart", one),
        ("Both products are in the cart", filled(p["first"], p["second"], "Items: 2")),
        ("The shipping method is chosen", paid),
        ("The order is placed", c.at("/checkout/placed/*")),
    )


def _buy_two(task: Task) -> Expert:
    p = task.parameters
    for name in (p["first"], p["second"]):
        yield from experts.open_product(name)
        yield from experts.add_to_cart()
    yield from experts.check_out(shipping=p["shipping"])
    yield from experts.finish()


def _sample_buy_new_address(data: ShopData, rng: random.Random) -> Parameters:
    return {
        "product": sampling.product(data, rng).name,
        **sampling.new_address(rng),
        "shipping": sampling.shipping(rng),
    }


def _judge_buy_new_address(p: Parameters, data: ShopData) -> checks.Evaluation:
    where = f"{p['label']}, {p['street']}, {p['city']}, {p['postcode']}"
    return c.ordered(f"1 x {p['product']}", items=1, address=where, shipping=p["shipping"])


def _buy_new_address_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    return checkout_milestones(filled(p["product"], "Items: 1"), {**p, "address": p["label"]})


def _buy_new_address(task: Task) -> Expert:
    p = task.parameters
    yield from experts.open_product(p["product"])
    yield from experts.add_to_cart()
    yield from experts.click("Checkout", "link")
    yield from experts.click("New address", "link")
    yield from experts.write({"Label": p["label"], "Street": p["street"], "City": p["city"], "Postcode": p["postcode"]})
    yield from experts.click("Save address", "button")
    yield from experts.click("Continue", "button")
    yield from experts.ship_and_pay(p["shipping"])
    yield from experts.finish()


def _sample_reorder(data: ShopData, rng: random.Random) -> Parameters:
    return {"number": sampling.order(data, rng, DELIVERED).number, **_delivery(rng)}


def _judge_reorder(p: Parameters, data: ShopData) -> checks.Evaluation:
    old = sampling.find_order(data, p["number"])
    lines = [f"{line.quantity} x {line.describe()}" for line in old.lines]
    return c.ordered(*lines, items=old.items, address=p["address"], shipping=p["shipping"])


def _reorder_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    return checkout_milestones(filled(f"Order {p['number']} is in the cart"), p)


def _reorder_steps(p: Parameters, data: ShopData) -> int:
    return 10 + sampling.order_page(data, p["number"])


def _reorder(task: Task) -> Expert:
    p = task.parameters
    yield from experts.open_order(p["number"], task.horizon - 10)
    yield from experts.click("Order again", "button")
    yield from experts.check_out(p["address"], p["shipping"])
    yield from experts.finish()


def _sample_buy_wished(data: ShopData, rng: random.Random) -> Parameters:
    return {"product": rng.choice(data.usual.wishes).name, **_delivery(rng)}


def _judge_buy_wished(p: Parameters, data: ShopData) -> checks.Evaluation:
    return c.ordered(f"1 x {p['product']}", items=1, address=p["address"], shipping=p["shipping"])


def _buy_wished_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    return checkout_milestones(filled(p["product"], "Items: 1"), p)


def _buy_wished(task: Task) -> Expert:
    p = task.parameters
    yield from experts.click("Wish list", "link")
    yield from experts.click(f"Move {p['product']}", "button", rf"Move {experts.PRODUCT}")
    yield from experts.check_out(p["address"], p["shipping"])
    yield from experts.finish()


BUY_PRODUCT = TaskTemplate(
    name="shop.buy_product",
    site="shop",
    intent="Buy the {product} in {colour}. Deliver it to {address} with {shipping} shipping.",
    sample=_sample_buy,
    evaluation=_judge_buy,
    milestones=_buy_milestones,
    expert=_buy,
    horizon=11,
)
BUY_RANKED = TaskTemplate(
    name="shop.buy_ranked",
    site="shop",
    intent="Buy the {rank} of the {category} in {colour}. Deliver it to {address} with {shipping} shipping.",
    sample=_sample_buy_ranked,
    evaluation=_judge_buy_ranked,
    milestones=_buy_ranked_milestones,
    expert=_buy_ranked,
    horizon=13,
)
BUY_TWO = TaskTemplate(
    name="shop.buy_two",
    site="shop",
    intent="Buy the {first} and the {second} with {shipping} shipping.",
    sample=_sample_buy_two,
    evaluation=_judge_buy_two,
    milestones=_buy_two_milestones,
    expert=_buy_two,
    horizon=12,
    split="validation",
)
BUY_TO_NEW_ADDRESS = TaskTemplate(
    name="shop.buy_to_new_address",
    site="shop",
    intent="Buy the {product} with {shipping} shipping to the new address {label}: {street}, {city}, {postcode}.",
    sample=_sample_buy_new_address,
    evaluation=_judge_buy_new_address,
    milestones=_buy_new_address_milestones,
    expert=_buy_new_address,
    horizon=15,
)
REORDER = TaskTemplate(
    name="shop.reorder",
    site="shop",
    intent="Order the items of order {number} again. Deliver them to {address} with {shipping} shipping.",
    sample=_sample_reorder,
    evaluation=_judge_reorder,
    milestones=_reorder_milestones,
    expert=_reorder,
    horizon=_reorder_steps,
)
BUY_WISHED = TaskTemplate(
    name="shop.buy_wished",
    site="shop",
    intent="Buy the {product} from the wish list. Deliver it to {address} with {shipping} shipping.",
    sample=_sample_buy_wished,
    evaluation=_judge_buy_wished,
    milestones=_buy_wished_milestones,
    expert=_buy_wished,
    horizon=9,
    split="test",
)
TEMPLATES = (BUY_PRODUCT, BUY_RANKED, BUY_TWO, BUY_TO_NEW_ADDRESS, REORDER, BUY_WISHED)
"""Templates that end with a placed order."""
