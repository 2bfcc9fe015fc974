"""Task templates over the shop and the forum that change something on both sites, in eleven steps and more.

Owns the long templates; see ``shop_forum`` for what they share.
"""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.across.shop_forum import price, product_named
from sites.across.skills import Data, both, go_to
from sites.experts import read
from sites.forum import checks as forum
from sites.forum import sampling as topics
from sites.forum import skills as posting
from sites.old_form import Expert, Parameters, TaskTemplate, noting
from sites.shop import checks as shop
from sites.shop import sampling as goods
from sites.shop.catalogue import Product
from sites.shop.data import SHIPPING
from sites.shop.skills import add_to_cart, check_out, open_product, open_ranked, wish
from sites.skills import finish, search

_PLACED = shop.at("/checkout/placed/*")


def _sample_wish(data: Data, rng: random.Random) -> Parameters:
    wished = {product.name for product in data["shop"].usual.wishes}
    while True:
        name = goods.product(data["shop"], rng)
        if name not in wished:
            return {"product": name, "forum": topics.new_forum(data["forum"], rng)}


def _wish_and_subscribe(task: Task) -> Expert:
    p = task.parameters
    yield from wish(p["product"])
    yield from go_to("forum")
    yield from posting.subscribe(p["forum"])
    yield from finish()


def _sample_ask(data: Data, rng: random.Random) -> Parameters:
    return {**topics.ranked_by_other(data["forum"], rng), "product": goods.product(data["shop"], rng)}


def _vote_and_tell_price(task: Task) -> Expert:
    p = task.parameters
    yield from posting.open_ranked(p["forum"], p["rank"])
    yield from posting.vote()
    yield from go_to("shop")
    seen = yield from search(p["product"])
    price = read(seen, rf"{p['product']} (\$\d+),")
    yield from noting(price, go_to("forum"))
    yield from posting.open_ranked(p["forum"], p["rank"])
    yield from posting.reply(price)
    yield from finish()


def _sample_buy(data: Data, rng: random.Random) -> Parameters:
    product = goods.product(data["shop"], rng)
    return {
        "product": product,
        "colour": goods.colour(data["shop"], rng, product),
        "shipping": goods.shipping(data["shop"], rng),
        "forum": topics.forum(data["forum"], rng),
        "title": topics.new_title(data["forum"], rng),
    }


def _total(p: Parameters, data: Data) -> str:
    return f"${product_named(data, p['product']).price + SHIPPING[p['shipping']]}"


def _buy_and_post(task: Task) -> Expert:
    p = task.parameters
    yield from open_product(p["product"])
    yield from add_to_cart(p["colour"])
    seen = yield from check_out(shipping=p["shipping"])
    total = read(seen, r"Total: (\$\d+)")
    yield from noting(total, go_to("forum"))
    yield from posting.submit_thread(p["forum"], p["title"], total)
    yield from finish()


def _sample_buy_ranked(data: Data, rng: random.Random) -> Parameters:
    return {
        **(ranked := goods.ranked(data["shop"], rng)),
        "colour": goods.meant_colour(data["shop"], rng, **ranked),
        "address": goods.address(data["shop"], rng),
        "shipping": goods.shipping(data["shop"], rng),
        "title": topics.title(data["forum"], rng),
    }


def _meant(p: Parameters, data: Data) -> Product:
    return goods.meant(data["shop"], p["category"], p["rank"])


def _buy_ranked_and_reply(task: Task) -> Expert:
    p = task.parameters
    seen = yield from open_ranked(p["category"], p["rank"])
    name = seen.title
    yield from noting(name, add_to_cart(p["colour"]))
    yield from check_out(p["address"], p["shipping"])
    yield from go_to("forum")
    yield from posting.find_thread(p["title"])
    yield from posting.vote()
    yield from posting.reply(name)
    yield from finish()


def _thread(p: Parameters, data: Data) -> topics.Thread:
    return data["forum"].titled(p["title"])


def _ranked_thread(p: Parameters, data: Data) -> topics.Thread:
    return data["forum"].first_thread(p["forum"], p["rank"])


TEMPLATES = (
    TaskTemplate(
        name="across.wish_and_subscribe",
        site="shop",
        also=("forum",),
        intent="Put the {product} on the shop's wish list, and subscribe to the forum {forum}.",
        sample=_sample_wish,
        evaluation=lambda p, d: both(
            checks.pages(shop.includes("/wishlist", "#wish-list", p["product"])),
            checks.pages(forum.subscribed(p["forum"])),
        ),
        milestones=lambda p, d: checks.milestones(
            ("The product is open", shop.at(shop.product_path(p["product"]))),
            ("The product is on the wish list", checks.shows(f"{p['product']} is on your wish list")),
            ("The forum is open", forum.at(f"/f/{p['forum']}*")),
            ("The forum is subscribed to", checks.both(forum.at(f"/f/{p['forum']}*"), checks.has("Unsubscribe"))),
        ),
        expert=_wish_and_subscribe,
        horizon=9,
    ),
    TaskTemplate(
        name="across.vote_and_tell_price",
        site="forum",
        also=("shop",),
        intent="Upvote the {rank} thread in the forum {forum}, and reply to it with the shop's price of the {product}.",
        sample=_sample_ask,
        evaluation=lambda p, d: checks.pages(
            forum.voted(_ranked_thread(p, d)), forum.replied(_ranked_thread(p, d), price(p, d))
        ),
        milestones=lambda p, d: checks.milestones(
            ("vote", posting.has_voted(_ranked_thread(p, d))),
            ("find the product", checks.both(shop.at("/search?*"), checks.shows(p["product"]))),
            *posting.replying(_ranked_thread(p, d), price(p, d)),
        ),
        expert=_vote_and_tell_price,
        horizon=17,
    ),
    TaskTemplate(
        name="across.buy_and_post",
        site="shop",
        also=("forum",),
        intent="Buy the {product} in {colour} with {shipping} shipping. Then submit a thread to the forum {forum} with "
        "the title {title} and the order's total as its text.",
        sample=_sample_buy,
        evaluation=lambda p, d: both(
            checks.pages(*shop.ordered(f"1 x {p['product']}, {p['colour']}", shipping=p["shipping"])),
            checks.pages(*forum.posted(p["forum"], p["title"], _total(p, d))),
        ),
        milestones=lambda p, d: checks.milestones(
            (
                "The product is in the cart",
                checks.both(shop.at("/cart"), checks.shows(f"{p['product']}, {p['colour']}")),
            ),
            ("The order is placed", _PLACED),
            ("The thread is written", forum.filled_in(p["forum"], p["title"], _total(p, d))),
            ("The thread is posted", posting.submit_thread.reached(p["forum"], p["title"], "")),
        ),
        expert=_buy_and_post,
        horizon=16,
    ),
    TaskTemplate(
        name="across.buy_ranked_and_reply",
        site="shop",
        also=("forum",),
        intent="Buy the {rank} of the {category} in {colour}, delivered to {address} with {shipping} shipping. Then "
        "upvote the forum thread {title} and reply to it with the name of what you bought.",
        sample=_sample_buy_ranked,
        evaluation=lambda p, d: both(
            checks.pages(
                *shop.ordered(f"1 x {_meant(p, d).name}, {p['colour']}", address=p["address"], shipping=p["shipping"])
            ),
            checks.pages(forum.voted(_thread(p, d)), forum.replied(_thread(p, d), _meant(p, d).name)),
        ),
        milestones=lambda p, d: checks.milestones(
            ("The product is in the cart", checks.both(shop.at("/cart"), checks.shows(_meant(p, d).name))),
            ("The order is placed", _PLACED),
            ("The thread has the vote", posting.has_voted(_thread(p, d))),
            ("The reply is posted", posting.replying(_thread(p, d), _meant(p, d).name)[1][1]),
        ),
        expert=_buy_ranked_and_reply,
        horizon=19,
        split="test",
    ),
)
"""Templates that change something on both sites."""
