"""Task templates about the wish list, with and without logging in first."""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.shop import checks as c
from sites.shop import experts, sampling
from sites.shop.data import ShopData
from sites.shop.tasks_catalogue import product_path
from sites.task_template import Expert, Parameters, TaskTemplate


def _sample_wish(data: ShopData, rng: random.Random) -> Parameters:
    while True:
        product = sampling.product(data, rng)
        if product not in data.usual.wishes:
            return {"product": product.name}


def _judge_wish(p: Parameters, data: ShopData) -> checks.Evaluation:
    return checks.pages(c.includes("/wishlist", "#wish-list", p["product"]))


def _wish_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    return checks.milestones(
        ("Search results are shown", checks.either(c.at("/search?*"), c.at("/product/*"))),
        ("The product is listed", checks.shows(p["product"])),
        ("The product is open", c.at(product_path(p["product"]))),
        ("The product is on the wish list", checks.shows(f"{p['product']} is on your wish list")),
    )


def _wish(task: Task) -> Expert:
    yield from experts.open_product(task.parameters["product"])
    yield from experts.click("Add to wish list", "button")
    yield from experts.finish()


def _sample_log_in(data: ShopData, rng: random.Random) -> Parameters:
    person = rng.choice([account for account in data.accounts.values() if account is not data.usual])
    product = sampling.product(data, rng)
    while product in person.wishes:
        product = sampling.product(data, rng)
    return {"email": person.email, "password": person.password, "product": product.name}


def _log_in_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    return checks.milestones(
        ("The log-in form is open", c.at("/login*")),
        ("The customer is logged in", checks.shows("You are logged in")),
        ("The product is open", c.at(product_path(p["product"]))),
        ("The product is on the wish list", checks.shows(f"{p['product']} is on your wish list")),
    )


def _log_in_and_wish(task: Task) -> Expert:
    p = task.parameters
    yield from experts.click("Log in", "link")
    yield from experts.write({"Email": p["email"], "Password": p["password"]})
    yield from experts.click("Log in", "button")
    yield from _wish(task)


def _sample_move(data: ShopData, rng: random.Random) -> Parameters:
    return {"product": rng.choice(data.usual.wishes).name, "quantity": rng.randint(2, 9)}


def _judge_move(p: Parameters, data: ShopData) -> checks.Evaluation:
    return c.in_cart(p["product"], p["quantity"])


def _move_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    moved = checks.both(c.at("/cart"), checks.shows(p["product"]))
    done = checks.both(moved, checks.shows(f"Items: {p['quantity']}"))
    return checks.milestones(
        ("The wish list is open", c.at("/wishlist")),
        ("The product is in the cart", moved),
        ("The quantity is written", checks.both(moved, checks.has("Quantity", str(p["quantity"])))),
        ("The quantity is changed", done),
    )


def _move_wish(task: Task) -> Expert:
    p = task.parameters
    yield from experts.click("Wish list", "link")
    yield from experts.click(f"Move {p['product']}", "button", rf"Move {experts.PRODUCT}")
    yield from experts.write({"Quantity": str(p["quantity"])})
    yield from experts.click("Update", "button")
    yield from experts.finish()


ADD_WISH = TaskTemplate(
    name="shop.add_wish",
    site="shop",
    intent="Put the {product} on the wish list.",
    sample=_sample_wish,
    evaluation=_judge_wish,
    milestones=_wish_milestones,
    expert=_wish,
    horizon=4,
)
LOG_IN_AND_WISH = TaskTemplate(
    name="shop.log_in_and_wish",
    site="shop",
    intent="Log in as {email} with password {password} and put the {product} on the wish list.",
    sample=_sample_log_in,
    evaluation=_judge_wish,
    milestones=_log_in_milestones,
    expert=_log_in_and_wish,
    horizon=8,
    require_login=False,
)
MOVE_WISH = TaskTemplate(
    name="shop.move_wish",
    site="shop",
    intent="Move the {product} from the wish list to the cart and change its quantity to {quantity}.",
    sample=_sample_move,
    evaluation=_judge_move,
    milestones=_move_milestones,
    expert=_move_wish,
    horizon=5,
)
TEMPLATES = (ADD_WISH, LOG_IN_AND_WISH, MOVE_WISH)
"""Templates about the wish list."""
