"""Tasks over the shop and the forum that change something on both sites, nine steps and more."""

from __future__ import annotations

from sites.across.skills import Data, go_to, on
from sites.checks import Evaluation, Milestones, both, pages, shows
from sites.experts import Expert, read
from sites.forum import checks as forum
from sites.forum import sampling as topics
from sites.forum import skills as posting
from sites.shop import checks as shop
from sites.shop import sampling as goods
from sites.shop import skills as shopping
from sites.shop.data import SHIPPING
from sites.skills import noting, search
from sites.task_template import TaskTemplate, drawn, together


class WishAndSubscribe(TaskTemplate, name="across.wish_and_subscribe", horizon=9):
    sites = ("shop", "forum")
    intent = "Put the {product} on the shop's wish list, and subscribe to the forum {forum}."
    product: str = drawn(on("shop", goods.unwished))
    forum: str = drawn(on("forum", topics.new_forum))

    def evaluation(self, data: Data) -> Evaluation:
        return pages(shop.includes("/wishlist", "#wish-list", self.product), forum.subscribed(self.forum))

    def milestones(self, data: Data) -> Milestones:
        return (
            ("The product is open", shopping.open_product.reached(self.product)),
            ("The product is on the wish list", shopping.wish.reached(self.product)),
            ("The forum is open", posting.open_forum.reached(self.forum)),
            ("The forum is subscribed to", posting.subscribe.reached(self.forum)),
        )

    def expert(self) -> Expert:
        yield from shopping.wish(self.product)
        yield from go_to("forum")
        yield from posting.subscribe(self.forum)


class VoteAndTellPrice(TaskTemplate, name="across.vote_and_tell_price", horizon=17):
    sites = ("forum", "shop")
    intent = "Upvote the {rank} thread in the forum {forum}, and reply to it with the shop's price of the {product}."
    forum: str = together(on("forum", topics.ranked_by_other))
    rank: str
    product: str = drawn(on("shop", goods.product))

    def price(self, data: Data) -> str:
        return f"${data['shop'].product(self.product).price}"

    def evaluation(self, data: Data) -> Evaluation:
        thread = data["forum"].first_thread(self.forum, self.rank)
        return pages(forum.voted(thread), forum.replied(thread, self.price(data)))

    def milestones(self, data: Data) -> Milestones:
        thread = data["forum"].first_thread(self.forum, self.rank)
        return (
            ("vote", posting.has_voted(thread)),
            ("find the product", both(shop.at("/search?*"), shows(self.product))),
            *posting.replying(thread, self.price(data)),
        )

    def expert(self) -> Expert:
        yield from posting.open_ranked(self.forum, self.rank)
        yield from posting.vote()
        yield from go_to("shop")
        seen = yield from search(self.product)
        price = read(seen, rf"{self.product} (\$\d+),")
        yield from noting(price, go_to("forum"))
        yield from posting.open_ranked(self.forum, self.rank)
        yield from posting.reply(price)


class BuyAndPost(TaskTemplate, name="across.buy_and_post", horizon=16):
    sites = ("shop", "forum")
    intent = (
        "Buy the {product} in {colour} with {shipping} shipping. Then submit a thread to the forum {forum} with the "
        "title {title} and the order's total as its text."
    )
    product: str = drawn(on("shop", goods.product))
    colour: str = drawn(on("shop", goods.colour), "product")
    shipping: str = drawn(on("shop", goods.shipping))
    forum: str = drawn(on("forum", topics.forum))
    title: str = drawn(on("forum", topics.new_title))

    def total(self, data: Data) -> str:
        return f"${data['shop'].product(self.product).price + SHIPPING[self.shipping]}"

    def evaluation(self, data: Data) -> Evaluation:
        bought = shop.ordered(f"1 x {self.product}, {self.colour}", shipping=self.shipping)
        return pages(*bought, *forum.posted(self.forum, self.title, self.total(data)))

    def milestones(self, data: Data) -> Milestones:
        return (
            ("The product is in the cart", shop.cart_shows(f"{self.product}, {self.colour}")),
            ("The order is placed", shopping.place_order.reached()),
            ("The thread is written", forum.filled_in(self.forum, self.title, self.total(data))),
            ("The thread is posted", posting.submit_thread.reached(self.forum, self.title, "")),
        )

    def expert(self) -> Expert:
        yield from shopping.open_product(self.product)
        yield from shopping.add_to_cart(self.colour)
        seen = yield from shopping.check_out(shipping=self.shipping)
        total = read(seen, r"Total: (\$\d+)")
        yield from noting(total, go_to("forum"))
        yield from posting.submit_thread(self.forum, self.title, total)


class BuyRankedAndReply(TaskTemplate, name="across.buy_ranked_and_reply", horizon=19, split="test"):
    sites = ("shop", "forum")
    intent = (
        "Buy the {rank} of the {category} in {colour}, delivered to {address} with {shipping} shipping. Then upvote "
        "the forum thread {title} and reply to it with the name of what you bought."
    )
    category: str = together(on("shop", goods.ranked))
    rank: str
    colour: str = drawn(on("shop", goods.meant_colour), "category", "rank")
    address: str = drawn(on("shop", goods.address))
    shipping: str = drawn(on("shop", goods.shipping))
    title: str = drawn(on("forum", topics.title))

    def meant(self, data: Data) -> str:
        return goods.meant(data["shop"], self.category, self.rank).name

    def evaluation(self, data: Data) -> Evaluation:
        line, thread = f"1 x {self.meant(data)}, {self.colour}", data["forum"].titled(self.title)
        bought = shop.ordered(line, address=self.address, shipping=self.shipping)
        return pages(*bought, forum.voted(thread), forum.replied(thread, self.meant(data)))

    def milestones(self, data: Data) -> Milestones:
        thread = data["forum"].titled(self.title)
        return (
            ("The product is in the cart", shop.cart_shows(self.meant(data))),
            ("The order is placed", shopping.place_order.reached()),
            ("The thread has the vote", posting.has_voted(thread)),
            ("The reply is posted", posting.replying(thread, self.meant(data))[1][1]),
        )

    def expert(self) -> Expert:
        seen = yield from shopping.open_ranked(self.category, self.rank)
        name = seen.title
        yield from noting(name, shopping.add_to_cart(self.colour))
        yield from shopping.check_out(self.address, self.shipping)
        yield from go_to("forum")
        yield from posting.find_thread(self.title)
        yield from posting.vote()
        yield from posting.reply(name)
