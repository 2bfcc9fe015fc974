"""Task templates over the shop and the forum: a fact of the shop is told on the forum, or the other way round.

Owns the templates of up to ten steps. Data are a mapping of both sites' data; parameters never hold the fact
that must be found.
"""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.across.skills import Data, found_in_shop, go_to
from sites.experts import read
from sites.forum import checks as forum
from sites.forum import sampling as topics
from sites.forum import skills as posting
from sites.old_form import Expert, Parameters, TaskTemplate, noting
from sites.shop import checks as shop
from sites.shop import sampling as goods
from sites.shop.catalogue import Product
from sites.shop.data import SUBJECTS
from sites.shop.skills import open_order, open_product, send_message
from sites.skills import finish, search


def product_named(data: Data, name: str) -> Product:
    """Return the shop's product of this name."""
    found: Product = data["shop"].product(name)
    return found


def price(p: Parameters, data: Data) -> str:
    """Return the price of the task's product as the shop shows it."""
    return f"${product_named(data, p['product']).price}"


def _sample_post(data: Data, rng: random.Random) -> Parameters:
    return {
        "product": goods.product(data["shop"], rng),
        "forum": topics.forum(data["forum"], rng),
        "title": topics.new_title(data["forum"], rng),
    }


def _post_price(task: Task) -> Expert:
    p = task.parameters
    seen = yield from search(p["product"])
    found = read(seen, rf"{p['product']} (\$\d+),")
    yield from noting(found, go_to("forum"))
    yield from posting.submit_thread(p["forum"], p["title"], found)
    yield from finish()


def _sample_reply(data: Data, rng: random.Random) -> Parameters:
    return {"product": goods.product(data["shop"], rng), "title": topics.title(data["forum"], rng)}


def _stock(p: Parameters, data: Data) -> str:
    return str(product_named(data, p["product"]).stock)


def _reply_stock(task: Task) -> Expert:
    p = task.parameters
    seen = yield from open_product(p["product"])
    pieces = read(seen, r"(\d+) in stock")
    yield from noting(pieces, go_to("forum"))
    yield from posting.find_thread(p["title"])
    yield from posting.reply(pieces)
    yield from finish()


def _sample_two(data: Data, rng: random.Random) -> Parameters:
    first = goods.product(data["shop"], rng)
    second = goods.product(data["shop"], rng)
    while product_named(data, second).price == product_named(data, first).price:
        second = goods.product(data["shop"], rng)
    return {"first": first, "second": second, "title": topics.title(data["forum"], rng)}


def _cheaper(p: Parameters, data: Data) -> str:
    return min((p["first"], p["second"]), key=lambda name: product_named(data, name).price)


def _reply_cheaper(task: Task) -> Expert:
    p = task.parameters
    seen = yield from search(p["first"])
    first = int(read(seen, rf"{p['first']} \$(\d+),"))
    seen = yield from noting(f"{p['first']} ${first}", search(p["second"]))
    second = int(read(seen, rf"{p['second']} \$(\d+),"))
    cheaper = p["first"] if first < second else p["second"]
    yield from noting(cheaper, go_to("forum"))
    yield from posting.find_thread(p["title"])
    yield from posting.reply(cheaper)
    yield from finish()


def _sample_total(data: Data, rng: random.Random) -> Parameters:
    return {"number": goods.order(data["shop"], rng), "user": topics.user(data["forum"], rng)}


def _total(p: Parameters, data: Data) -> str:
    return f"${data['shop'].order(p['number']).total}"


def _message_total(task: Task) -> Expert:
    p = task.parameters
    seen = yield from open_order(p["number"])
    total = read(seen, r"Total: (\$\d+)")
    yield from noting(total, go_to("forum"))
    yield from posting.open_user(p["user"])
    yield from posting.send_message(total)
    yield from finish()


def _sample_question(data: Data, rng: random.Random) -> Parameters:
    return {**topics.ranked_by_other(data["forum"], rng), "subject": rng.choice(SUBJECTS[1:])}


def _author(p: Parameters, data: Data) -> str:
    return data["forum"].first_thread(p["forum"], p["rank"]).author


def _name_author(task: Task) -> Expert:
    p = task.parameters
    seen = yield from posting.sort_forum(p["forum"], p["rank"])
    seen = yield from posting.open_first(seen)
    author = posting.author(seen)
    yield from noting(author, go_to("shop"))
    yield from send_message(p["subject"], author)
    yield from finish()


def _replying(p: Parameters, data: Data, text: str) -> tuple[checks.Step, checks.Step, checks.Step]:
    thread = data["forum"].titled(p["title"])
    return (("open the thread", forum.at(thread.path)), *posting.replying(thread, text))


TEMPLATES = (
    TaskTemplate(
        name="across.post_price",
        site="shop",
        also=("forum",),
        intent="Find the price of the {product} in the shop and submit a thread to the forum {forum} with the title "
        "{title} and the price as its text.",
        sample=_sample_post,
        evaluation=lambda p, d: checks.pages(*forum.posted(p["forum"], p["title"], price(p, d))),
        milestones=lambda p, d: checks.milestones(
            ("find the product", found_in_shop(p["product"])),
            ("choose the forum", checks.both(forum.at("/submit*"), checks.has("Forum", p["forum"]))),
            ("fill in the form", forum.filled_in(p["forum"], p["title"], price(p, d))),
            ("post the thread", posting.submit_thread.reached(p["forum"], p["title"], "")),
        ),
        expert=_post_price,
        horizon=8,
    ),
    TaskTemplate(
        name="across.reply_stock",
        site="shop",
        also=("forum",),
        intent="Reply to the forum thread {title} with the number of pieces that the shop has in stock of the "
        "{product}.",
        sample=_sample_reply,
        evaluation=lambda p, d: checks.pages(forum.replied(d["forum"].titled(p["title"]), _stock(p, d))),
        milestones=lambda p, d: checks.milestones(
            ("open the product", shop.at(shop.product_path(p["product"]))), *_replying(p, d, _stock(p, d))
        ),
        expert=_reply_stock,
        horizon=8,
    ),
    TaskTemplate(
        name="across.reply_cheaper",
        site="shop",
        also=("forum",),
        intent="Which is cheaper in the shop, the {first} or the {second}? Reply to the forum thread {title} with "
        "its name.",
        sample=_sample_two,
        evaluation=lambda p, d: checks.pages(forum.replied(d["forum"].titled(p["title"]), _cheaper(p, d))),
        milestones=lambda p, d: checks.milestones(
            ("find a product", checks.either(found_in_shop(p["first"]), found_in_shop(p["second"]))),
            *_replying(p, d, _cheaper(p, d)),
        ),
        expert=_reply_cheaper,
        horizon=8,
        split="validation",
    ),
    TaskTemplate(
        name="across.message_total",
        site="shop",
        also=("forum",),
        intent="Send the forum user {user} a message with the total of shop order {number}.",
        sample=_sample_total,
        evaluation=lambda p, d: checks.pages(forum.messaged(p["user"], _total(p, d))),
        milestones=lambda p, d: checks.milestones(
            ("open the order", shop.at(f"/orders/{p['number']}")),
            ("open the user", forum.at(f"/user/{p['user']}*")),
            *posting.messaging(p["user"], _total(p, d)),
        ),
        expert=_message_total,
        horizon=lambda p, d: 9 + goods.order_page(d["shop"], p["number"]),
    ),
    TaskTemplate(
        name="across.name_author",
        site="forum",
        also=("shop",),
        intent="Send the shop a message about {subject} with the name of the author of the {rank} thread in the forum "
        "{forum}.",
        sample=_sample_question,
        evaluation=lambda p, d: checks.pages(shop.equals("/messages", ".message", f"{p['subject']}: {_author(p, d)}")),
        milestones=lambda p, d: checks.milestones(
            (
                "The thread is open",
                forum.at(d["forum"].first_thread(p["forum"], p["rank"]).path),
            ),
            ("The subject is chosen", checks.both(shop.at("/contact"), checks.has("Subject", p["subject"]))),
            ("The text is written", checks.both(shop.at("/contact"), checks.has("Text", _author(p, d)))),
            ("The message is sent", checks.both(shop.at("/messages"), checks.shows(_author(p, d)))),
        ),
        expert=_name_author,
        horizon=11,
        split="test",
    ),
)
"""Templates of up to eleven steps."""
