"""Task templates in which something is written: reviews, messages, a subscription."""

from __future__ import annotations

import random
from typing import Any

from records.episodes import Task
from sites import checks
from sites.shop import checks as c
from sites.shop import experts, sampling
from sites.shop.data import FREQUENCIES, SUBJECTS, ShopData
from sites.shop.tasks_catalogue import product_path
from sites.task_template import Expert, Parameters, TaskTemplate

OPINIONS = ("Love it", "Works well", "Not for me", "Good value", "Broke soon", "Best gift")
TEXTS = ("I use it every day", "It came late", "My family likes it", "The colour is wrong")
STARS = ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")


def _sample_review(data: ShopData, rng: random.Random) -> Parameters:
    product = sampling.product(data, rng).name
    return {"product": product, "stars": rng.choice(STARS), "title": rng.choice(OPINIONS), "text": rng.choice(TEXTS)}


def reviewed(product: str, stars: str, title: str, text: str, author: str) -> dict[str, Any]:
    """The newest review of a product is this one; a target of ``checks.pages``."""
    path = f"{product_path(product)}/reviews"
    return c.includes(path, ".review", f"{title}, {stars.split()[0]} stars, {author}", text)


def write_review(product: str, stars: str, title: str, text: str) -> experts.Skill:
    """Find a product and review it."""
    yield from experts.open_product(product)
    yield from experts.click("Write a review", "link")
    yield from experts.choose("Stars", stars)
    yield from experts.write({"Title": title, "Text": text})
    return (yield from experts.click("Send review", "button"))


def _judge_review(p: Parameters, data: ShopData) -> checks.Evaluation:
    return checks.pages(reviewed(p["product"], p["stars"], p["title"], p["text"], data.usual.name))


def _review_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    path = product_path(p["product"])
    sent = checks.both(c.at(f"{path}/reviews"), checks.shows("Thank you for your review"))
    starred = checks.both(c.at(f"{path}/review"), checks.has("Stars", p["stars"]))
    return checks.milestones(
        ("The product is open", c.at(f"{path}*")),
        ("The form is open", c.at(f"{path}/review")),
        ("The stars are chosen", checks.either(starred, sent)),
        ("The review is sent", sent),
    )


def _review(task: Task) -> Expert:
    p = task.parameters
    yield from write_review(p["product"], p["stars"], p["title"], p["text"])
    yield from experts.finish()


def sample_newsletter(data: ShopData, rng: random.Random) -> Parameters:
    """Draw an email address and a frequency other than the one that is chosen by default."""
    name = rng.choice(("mia", "tom", "ada", "leo", "zoe", "sam"))
    email = f"{name}{rng.randint(10, 99)}@post.example"
    return {"email": email, "frequency": rng.choice(FREQUENCIES[1:])}


def _judge_newsletter(p: Parameters, data: ShopData) -> checks.Evaluation:
    subscribed = f"Subscribed: {p['email']}, {p['frequency']}"
    return checks.pages(c.equals("/newsletter", "#subscription", subscribed))


def _newsletter_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    done = checks.shows(f"Subscribed: {p['email']}, {p['frequency']}")
    return checks.milestones(
        ("The form is open", c.at("/newsletter")),
        ("The email is written", checks.either(checks.has("Email", p["email"]), done)),
        ("The frequency is chosen", checks.either(checks.has("Frequency", p["frequency"]), done)),
        ("The subscription is made", done),
    )


def _subscribe(task: Task) -> Expert:
    yield from experts.click("Newsletter", "link")
    yield from experts.write({"Email": task.parameters["email"]})
    yield from experts.choose("Frequency", task.parameters["frequency"])
    yield from experts.click("Subscribe", "button")
    yield from experts.finish()


def _sample_message(data: ShopData, rng: random.Random) -> Parameters:
    text = f"{rng.choice(('Where is', 'Please check', 'I paid'))} order {sampling.order(data, rng).number}"
    return {"subject": rng.choice(SUBJECTS[1:]), "text": text}


def _judge_message(p: Parameters, data: ShopData) -> checks.Evaluation:
    return checks.pages(c.equals("/messages", ".message", f"{p['subject']}: {p['text']}"))


def _message_milestones(p: Parameters, data: ShopData) -> checks.Milestones:
    done = checks.both(c.at("/messages"), checks.shows(f"{p['subject']}: {p['text']}"))
    return checks.milestones(
        ("The form is open", c.at("/contact")),
        ("The subject is chosen", checks.either(checks.has("Subject", p["subject"]), done)),
        ("The text is written", checks.either(checks.has("Text", p["text"]), done)),
        ("The message is sent", done),
    )


def _send_message(task: Task) -> Expert:
    yield from experts.click("Contact", "link")
    yield from experts.choose("Subject", task.parameters["subject"])
    yield from experts.write({"Text": task.parameters["text"]})
    yield from experts.click("Send message", "button")
    yield from experts.finish()


WRITE_REVIEW = TaskTemplate(
    name="shop.write_review",
    site="shop",
    intent="Review the {product} with {stars}, title {title}, text {text}.",
    sample=_sample_review,
    evaluation=_judge_review,
    milestones=_review_milestones,
    expert=_review,
    horizon=8,
)
SUBSCRIBE = TaskTemplate(
    name="shop.subscribe",
    site="shop",
    intent="Subscribe {email} to the newsletter, {frequency}.",
    sample=sample_newsletter,
    evaluation=_judge_newsletter,
    milestones=_newsletter_milestones,
    expert=_subscribe,
    horizon=5,
)
SEND_MESSAGE = TaskTemplate(
    name="shop.send_message",
    site="shop",
    intent="Send the shop a message about {subject}: {text}.",
    sample=_sample_message,
    evaluation=_judge_message,
    milestones=_message_milestones,
    expert=_send_message,
    horizon=5,
)
TEMPLATES = (WRITE_REVIEW, SUBSCRIBE, SEND_MESSAGE)
"""Templates in which something is written."""
