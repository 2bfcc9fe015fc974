"""Tasks over the shop and the forum, up to eleven steps: a fact of one is told on the other."""

from __future__ import annotations

from sites.across.skills import Data, found_in_shop, go_to, on, two_of_different_price
from sites.checks import Evaluation, Milestones, both, either, has, pages, shows
from sites.experts import Expert, read
from sites.forum import checks as forum
from sites.forum import sampling as topics
from sites.forum import skills as posting
from sites.shop import checks as shop
from sites.shop import sampling as goods
from sites.shop import skills as shopping
from sites.shop.data import SUBJECTS
from sites.skills import noting, search
from sites.task_template import TaskTemplate, drawn, one_of, together


class PostPrice(TaskTemplate, name="across.post_price", horizon=8):
    sites = ("shop", "forum")
    intent = (
        "Find the price of the {product} in the shop and submit a thread to the forum {forum} with the title {title} "
        "and the price as its text."
    )
    product: str = drawn(on("shop", goods.product))
    forum: str = drawn(on("forum", topics.forum))
    title: str = drawn(on("forum", topics.new_title))

    def price(self, data: Data) -> str:
        return f"${data['shop'].product(self.product).price}"

    def evaluation(self, data: Data) -> Evaluation:
        return pages(*forum.posted(self.forum, self.title, self.price(data)))

    def milestones(self, data: Data) -> Milestones:
        return (
            ("find the product", found_in_shop(self.product)),
            ("choose the forum", both(forum.at("/submit*"), has("Forum", self.forum))),
            ("fill in the form", forum.filled_in(self.forum, self.title, self.price(data))),
            ("post the thread", posting.submit_thread.reached(self.forum, self.title, "")),
        )

    def expert(self) -> Expert:
        seen = yield from search(self.product)
        price = read(seen, rf"{self.product} (\$\d+),")
        yield from noting(price, go_to("forum"))
        yield from posting.submit_thread(self.forum, self.title, price)


class ReplyStock(TaskTemplate, name="across.reply_stock", horizon=8):
    sites = ("shop", "forum")
    intent = "Reply to the forum thread {title} with the number of pieces that the shop has in stock of the {product}."
    product: str = drawn(on("shop", goods.product))
    title: str = drawn(on("forum", topics.title))

    def evaluation(self, data: Data) -> Evaluation:
        return pages(forum.replied(data["forum"].titled(self.title), str(data["shop"].product(self.product).stock)))

    def milestones(self, data: Data) -> Milestones:
        thread = data["forum"].titled(self.title)
        return (
            ("open the product", shop.at(shop.product_path(self.product))),
            ("open the thread", forum.at(thread.path)),
            *posting.replying(thread, str(data["shop"].product(self.product).stock)),
        )

    def expert(self) -> Expert:
        seen = yield from shopping.open_product(self.product)
        pieces = read(seen, r"(\d+) in stock")
        yield from noting(pieces, go_to("forum"))
        yield from posting.find_thread(self.title)
        yield from posting.reply(pieces)


class ReplyCheaper(TaskTemplate, name="across.reply_cheaper", horizon=8, split="validation"):
    sites = ("shop", "forum")
    intent = (
        "Which is cheaper in the shop, the {first} or the {second}? Reply to the forum thread {title} with its name."
    )
    first: str = together(two_of_different_price)
    second: str
    title: str = drawn(on("forum", topics.title))

    def cheaper(self, data: Data) -> str:
        return min((self.first, self.second), key=lambda name: data["shop"].product(name).price)

    def evaluation(self, data: Data) -> Evaluation:
        return pages(forum.replied(data["forum"].titled(self.title), self.cheaper(data)))

    def milestones(self, data: Data) -> Milestones:
        thread = data["forum"].titled(self.title)
        return (
            ("find a product", either(found_in_shop(self.first), found_in_shop(self.second))),
            ("open the thread", forum.at(thread.path)),
            *posting.replying(thread, self.cheaper(data)),
        )

    def expert(self) -> Expert:
        seen = yield from search(self.first)
        first = int(read(seen, rf"{self.first} \$(\d+),"))
        seen = yield from noting(f"{self.first} ${first}", search(self.second))
        second = int(read(seen, rf"{self.second} \$(\d+),"))
        cheaper = self.first if first < second else self.second
        yield from noting(cheaper, go_to("forum"))
        yield from posting.find_thread(self.title)
        yield from posting.reply(cheaper)


class MessageTotal(TaskTemplate, name="across.message_total"):
    sites = ("shop", "forum")
    intent = "Send the forum user {user} a message with the total of shop order {number}."
    number: int = drawn(on("shop", goods.order))
    user: str = drawn(on("forum", topics.user))

    def total(self, data: Data) -> str:
        return f"${data['shop'].order(self.number).total}"

    def evaluation(self, data: Data) -> Evaluation:
        return pages(forum.messaged(self.user, self.total(data)))

    def milestones(self, data: Data) -> Milestones:
        return (
            ("open the order", shop.at(f"/orders/{self.number}")),
            ("open the user", forum.at(f"/user/{self.user}*")),
            *posting.messaging(self.user, self.total(data)),
        )

    def expert(self) -> Expert:
        seen = yield from shopping.open_order(self.number)
        total = read(seen, r"Total: (\$\d+)")
        yield from noting(total, go_to("forum"))
        yield from posting.open_user(self.user)
        yield from posting.send_message(total)

    def steps(self, data: Data) -> int:
        return 9 + goods.order_page(data["shop"], self.number)


class NameAuthor(TaskTemplate, name="across.name_author", horizon=11, split="test"):
    sites = ("forum", "shop")
    intent = (
        "Send the shop a message about {subject} with the name of the author of the {rank} thread in the forum {forum}."
    )
    forum: str = together(on("forum", topics.ranked_by_other))
    rank: str
    subject: str = one_of(SUBJECTS[1:])

    def evaluation(self, data: Data) -> Evaluation:
        author = data["forum"].first_thread(self.forum, self.rank).author
        return pages(shop.equals("/messages", ".message", f"{self.subject}: {author}"))

    def milestones(self, data: Data) -> Milestones:
        thread = data["forum"].first_thread(self.forum, self.rank)
        return (
            ("The thread is open", forum.at(thread.path)),
            ("The subject is chosen", both(shop.at("/contact"), has("Subject", self.subject))),
            ("The text is written", both(shop.at("/contact"), has("Text", thread.author))),
            ("The message is sent", both(shop.at("/messages"), shows(thread.author))),
        )

    def expert(self) -> Expert:
        seen = yield from posting.sort_forum(self.forum, self.rank)
        seen = yield from posting.open_first(seen)
        author = posting.author(seen)
        yield from noting(author, go_to("shop"))
        yield from shopping.send_message(self.subject, author)
