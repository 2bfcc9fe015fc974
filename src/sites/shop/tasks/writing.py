"""Tasks in which something is written: reviews, messages, a subscription."""

from __future__ import annotations

import random
from typing import Self

from sites.checks import Evaluation, Milestones, both, either, has, pages
from sites.experts import Expert
from sites.shop import sampling, skills
from sites.shop.checks import at, messaged, product_path, reviewed, subscribed
from sites.shop.data import FREQUENCIES, SUBJECTS, ShopData
from sites.shop.words import OPINIONS, STARS, TEXTS
from sites.task_template import TaskTemplate, drawn, one_of


class WriteReview(TaskTemplate, name="shop.write_review", horizon=8):
    intent = "Review the {product} with {stars}, title {title}, text {text}."
    product: str = drawn(sampling.product)
    stars: str = one_of(STARS)
    title: str = one_of(OPINIONS)
    text: str = one_of(TEXTS)

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(reviewed(self.product, self.stars, self.title, self.text, data.usual.name))

    def milestones(self, data: ShopData) -> Milestones:
        path = product_path(self.product)
        done = skills.write_review.reached(self.product, self.stars, self.title, self.text)
        return (
            ("The product is open", at(f"{path}*")),
            ("The form is open", at(f"{path}/review")),
            ("The stars are chosen", either(both(at(f"{path}/review"), has("Stars", self.stars)), done)),
            ("The review is sent", done),
        )

    def expert(self) -> Expert:
        yield from skills.write_review(self.product, self.stars, self.title, self.text)


class Subscribe(TaskTemplate, name="shop.subscribe", horizon=5):
    intent = "Subscribe {email} to the newsletter, {frequency}."
    email: str = drawn(sampling.email)
    frequency: str = one_of(FREQUENCIES[1:])

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(subscribed(self.email, self.frequency))

    def milestones(self, data: ShopData) -> Milestones:
        done = skills.subscribe.reached(self.email, self.frequency)
        return (
            ("The form is open", at("/newsletter")),
            ("The email is written", either(has("Email", self.email), done)),
            ("The frequency is chosen", either(has("Frequency", self.frequency), done)),
            ("The subscription is made", done),
        )

    def expert(self) -> Expert:
        yield from skills.subscribe(self.email, self.frequency)


class SendMessage(TaskTemplate, name="shop.send_message", horizon=5):
    intent = "Send the shop a message about {subject}: {text}."
    subject: str = one_of(SUBJECTS[1:])
    text: str

    @classmethod
    def sample(cls, data: ShopData, rng: random.Random) -> Self:
        opening = rng.choice(("Where is", "Please check", "I paid"))
        return cls.draw(data, rng, text=f"{opening} order {sampling.order(data, rng)}")

    def evaluation(self, data: ShopData) -> Evaluation:
        return pages(messaged(self.subject, self.text))

    def milestones(self, data: ShopData) -> Milestones:
        done = skills.send_message.reached(self.subject, self.text)
        return (
            ("The form is open", at("/contact")),
            ("The subject is chosen", either(has("Subject", self.subject), done)),
            ("The text is written", either(has("Text", self.text), done)),
            ("The message is sent", done),
        )

    def expert(self) -> Expert:
        yield from skills.send_message(self.subject, self.text)
