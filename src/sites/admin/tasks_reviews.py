"""Task templates that decide on reviews: those of one author, and of two authors differently."""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.admin import checks as c
from sites.admin import experts, sampling
from sites.admin.data import AdminData
from sites.admin.review_pages import DECISIONS, DELETE
from sites.admin.words import REVIEW_STATUSES
from sites.old_form import Parameters, TaskTemplate

_ACTIONS = (*DECISIONS, DELETE)
_PENDING = REVIEW_STATUSES[0]


def _sample_one(data: AdminData, rng: random.Random) -> Parameters:
    return {"action": rng.choice(_ACTIONS), "author": sampling.authors(data, rng, 1)[0]}


def _decided(data: AdminData, author: str, action: str) -> list[dict[str, object]]:
    """Expect that all waiting reviews of an author were decided on in this way."""
    found = sampling.waiting(data, author)
    if action == DELETE:
        return [c.equals(f"/reviews?author={author}&status=All", "#count", f"0 reviews: {author}")]
    return [c.includes(f"/reviews/{review.number}", "#record", f"{DECISIONS[action]}, {author}") for review in found]


def _left(data: AdminData, *authors: str) -> dict[str, object]:
    """Expect that nobody else's reviews were decided on."""
    total = sum(review.status == _PENDING for review in data.reviews.values())
    rest = total - sum(len(sampling.waiting(data, author)) for author in authors)
    return c.equals("/reviews", "#count", f"{rest} reviews: {_PENDING}")


def _judge_one(p: Parameters, data: AdminData) -> checks.Evaluation:
    return checks.pages(*_decided(data, p["author"], p["action"]), _left(data, p["author"]))


def _listed(author: str) -> checks.Check:
    return c.at(f"/reviews?author={author.replace(' ', '+')}*")


def _done(data: AdminData, author: str, action: str) -> checks.Check:
    verb = DECISIONS.get(action, "Deleted")
    return checks.both(c.at("/reviews"), checks.shows(f"{verb} {len(sampling.waiting(data, author))} reviews"))


def _names(data: AdminData, author: str) -> list[str]:
    return [f"Select {review.number}" for review in sampling.waiting(data, author)]


def _one_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    done = _done(data, p["author"], p["action"])
    return checks.milestones(
        ("The reviews are shown", c.at("/reviews*")),
        ("The author's reviews are listed", checks.either(_listed(p["author"]), done)),
        ("All of them are ticked", checks.either(c.ticked(_names(data, p["author"])), done)),
        ("They are decided on", done),
    )


def _decide(author: str, action: str) -> experts.Skill:
    """On the table of reviews: decide on all that wait, of one author."""
    yield from experts.click("Filters", "button")
    seen = yield from experts.filter_rows("Author", author)
    yield from experts.tick_all(experts.lines_of(seen, "checkbox", r"Select \d+"))
    yield from experts.choose("Action", action)
    seen = yield from experts.click("Apply", "button")
    return (yield from experts.click("Confirm", "button")) if action == DELETE else seen


def _one(task: Task) -> experts.Skill:
    yield from experts.open_from_menu("Catalog", "Reviews")
    return (yield from _decide(task.parameters["author"], task.parameters["action"]))


def _one_steps(p: Parameters, data: AdminData) -> int:
    return 8 + len(sampling.waiting(data, p["author"])) + (p["action"] == DELETE)


def _sample_two(data: AdminData, rng: random.Random) -> Parameters:
    first, second = sampling.authors(data, rng, 2)
    action, other = rng.sample(_ACTIONS, 2)
    return {"action": action, "first": first, "other": other, "second": second}


def _judge_two(p: Parameters, data: AdminData) -> checks.Evaluation:
    decided = [*_decided(data, p["first"], p["action"]), *_decided(data, p["second"], p["other"])]
    return checks.pages(*decided, _left(data, p["first"], p["second"]))


def _two_milestones(p: Parameters, data: AdminData) -> checks.Milestones:
    first, second = _done(data, p["first"], p["action"]), _done(data, p["second"], p["other"])
    return checks.milestones(
        ("The first author's reviews are listed", checks.either(_listed(p["first"]), first)),
        ("They are decided on", first),
        ("The second author's reviews are ticked", checks.either(c.ticked(_names(data, p["second"])), second)),
        ("They are decided on too", second),
    )


def _two(task: Task) -> experts.Skill:
    p = task.parameters
    yield from experts.open_from_menu("Catalog", "Reviews")
    yield from _decide(p["first"], p["action"])
    return (yield from _decide(p["second"], p["other"]))


def _two_steps(p: Parameters, data: AdminData) -> int:
    first = _one_steps({"author": p["first"], "action": p["action"]}, data)
    return first + _one_steps({"author": p["second"], "action": p["other"]}, data) - 3


MODERATE = TaskTemplate(
    name="admin.moderate_reviews",
    site="admin",
    intent="{action} all pending reviews by {author}.",
    sample=_sample_one,
    evaluation=_judge_one,
    milestones=_one_milestones,
    expert=experts.script(_one),
    horizon=_one_steps,
)
MODERATE_TWO = TaskTemplate(
    name="admin.moderate_two",
    site="admin",
    intent="{action} all pending reviews by {first}, then {other} all pending reviews by {second}.",
    sample=_sample_two,
    evaluation=_judge_two,
    milestones=_two_milestones,
    expert=experts.script(_two),
    horizon=_two_steps,
    split="test",
)
TEMPLATES = (MODERATE, MODERATE_TWO)
"""Templates about reviews."""
