"""Errands about people on the forum: one's own posts and settings, authors, blocking; thirteen to nineteen steps.

Owns templates of the collection ``errands`` (see ``sites.collections``); their pieces are the draws, checks and
skills of the forum's other templates.
"""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.forum import checks as c
from sites.forum import experts as e
from sites.forum import sampling as s
from sites.forum.data import ME, MY_SUBSCRIPTIONS, ForumData, Thread
from sites.old_form import Expert, Parameters, TaskTemplate

_PROFILE = f"/user/{ME}"


def _own_two(d: ForumData, rng: random.Random) -> Parameters:
    """Draw two of the user's own threads."""
    while True:
        first, second = s.own_thread(d, rng)["title"], s.own_thread(d, rng)["title"]
        if first != second:
            return {"first": first, "second": second}


def _two_authors(d: ForumData, rng: random.Random) -> Parameters:
    """Draw a forum whose newest and top threads are by two other users."""
    while True:
        forum = s.forum(d, rng)
        if len({ME, *(s.first_thread(d, forum, rank).author for rank in s.RANKS)}) == 1 + len(s.RANKS):
            return {"forum": forum}


def _own_subscription(d: ForumData, rng: random.Random) -> str:
    return rng.choice(MY_SUBSCRIPTIONS)


def _first(p: Parameters, d: ForumData) -> Thread:
    return s.first_thread(d, p["forum"], p["rank"])


def _authors(p: Parameters, d: ForumData) -> tuple[str, str]:
    newest, top = (s.first_thread(d, p["forum"], rank).author for rank in ("newest", "top"))
    return newest, top


def _member(forum: str, member: bool = True) -> checks.Check:
    return checks.both(c.at(f"/f/{forum}*"), checks.has("Unsubscribe" if member else "Subscribe"))


def _put_own_in_order(task: Task) -> Expert:
    p = task.parameters
    seen = yield from e.click("My profile", "link")
    yield from e.open_thread(seen, p["first"])
    yield from e.click("Edit", "link")
    yield from e.write("Text", p["text"])
    yield from e.click("Save", "button")
    seen = yield from e.click("My profile", "link")
    yield from e.open_thread(seen, p["second"])
    yield from e.click("Pin", "button")
    yield from e.click("My profile", "link")
    yield from e.click("Edit profile", "link")
    yield from e.write("Bio", p["bio"])
    yield from e.click("Save", "button")
    yield from e.finish()


def _thank_authors(task: Task) -> Expert:
    p = task.parameters
    for rank in ("newest", "top"):
        seen = yield from e.open_ranked(p["forum"], rank)
        yield from e.open_author(seen)
        yield from e.send_message(p["text"])
    yield from e.finish()


def _leave_author(task: Task) -> Expert:
    p = task.parameters
    seen = yield from e.open_ranked(p["forum"], p["rank"])
    author = e.author_link(seen).name
    yield from e.click("Downvote", "button", e.VOTE_RIVALS)
    yield from e.click(author, "link", r"[a-z]+\d*")
    yield from e.click("Block", "button")
    yield from e.open_forum(p["other"])
    yield from e.click("Subscribe", "button")
    yield from e.finish()


TEMPLATES = (
    TaskTemplate(
        name="forum.put_own_in_order",
        site="forum",
        intent="Change the text of your thread {first} to {text}, pin your thread {second}, and change your bio to: "
        "{bio}",
        sample=s.joined(_own_two, s.draw(text=s.post, bio=s.bio)),
        evaluation=lambda p, d: checks.pages(
            c.equals(s.titled(d, p["first"]).path, "#body", p["text"]),
            c.includes(_PROFILE, "#pinned", p["second"]),
            c.equals(_PROFILE, "#bio", p["bio"]),
        ),
        milestones=lambda p, d: checks.milestones(
            (
                "change the text",
                checks.both(c.at(s.titled(d, p["first"]).path), checks.shows("was changed", p["text"])),
            ),
            ("pin the other thread", checks.both(c.at(s.titled(d, p["second"]).path), checks.shows("is pinned"))),
            ("open the form of the profile", c.at("/profile")),
            ("change the bio", checks.both(c.at(_PROFILE), checks.shows("Your profile was changed", p["bio"]))),
        ),
        expert=_put_own_in_order,
        horizon=13,
    ),
    TaskTemplate(
        name="forum.change_settings",
        site="forum",
        intent="Change your bio to {bio}, unsubscribe from the forum {mine} and subscribe to {first} and {second}.",
        sample=s.joined(s.draw(bio=s.bio, mine=_own_subscription), s.two_forums),
        evaluation=lambda p, d: checks.pages(
            c.equals(_PROFILE, "#bio", p["bio"]),
            c.equals(f"/f/{p['mine']}", "#subscription", "Subscribe"),
            c.subscribed(p["first"]),
            c.subscribed(p["second"]),
        ),
        milestones=lambda p, d: checks.milestones(
            ("change the bio", checks.both(c.at(_PROFILE), checks.shows("Your profile was changed", p["bio"]))),
            ("leave the forum", checks.both(_member(p["mine"], False), checks.shows("You are no longer subscribed"))),
            ("subscribe to the first forum", _member(p["first"])),
            ("subscribe to the second forum", _member(p["second"])),
        ),
        expert=e.script(
            lambda t: e.click("My profile", "link"),
            lambda t: e.click("Edit profile", "link"),
            lambda t: e.write("Bio", t.parameters["bio"]),
            lambda t: e.click("Save", "button"),
            lambda t: e.open_forum(t.parameters["mine"]),
            lambda t: e.click("Unsubscribe", "button"),
            lambda t: e.open_forum(t.parameters["first"]),
            lambda t: e.click("Subscribe", "button"),
            lambda t: e.open_forum(t.parameters["second"]),
            lambda t: e.click("Subscribe", "button"),
        ),
        horizon=17,
    ),
    TaskTemplate(
        name="forum.thank_authors",
        site="forum",
        intent="Send the authors of the newest and of the top thread in the forum {forum} the message: {text}",
        sample=s.joined(_two_authors, s.draw(text=s.post)),
        evaluation=lambda p, d: checks.pages(*(c.messaged(author, p["text"]) for author in _authors(p, d))),
        milestones=lambda p, d: checks.milestones(
            ("open the author of the newest thread", c.at(f"/user/{_authors(p, d)[0]}*")),
            c.messaging(_authors(p, d)[0], p["text"])[1],
            ("open the author of the top thread", c.at(f"/user/{_authors(p, d)[1]}*")),
            c.messaging(_authors(p, d)[1], p["text"])[1],
        ),
        expert=_thank_authors,
        horizon=19,
    ),
    TaskTemplate(
        name="forum.leave_author",
        site="forum",
        intent="Downvote the {rank} thread in the forum {forum}, block its author, and subscribe to the forum {other}.",
        sample=s.joined(s.ranked_by_other, s.draw(other=s.new_forum)),
        evaluation=lambda p, d: checks.pages(
            c.voted(_first(p, d), "Downvote"),
            c.equals(f"/user/{_first(p, d).author}", "#block", "Unblock"),
            c.subscribed(p["other"]),
        ),
        milestones=lambda p, d: checks.milestones(
            ("open the thread", c.at(_first(p, d).path)),
            ("downvote it", c.has_voted(_first(p, d), "Downvote")),
            ("block the author", checks.shows(f"You blocked {_first(p, d).author}.")),
            ("subscribe", _member(p["other"])),
        ),
        expert=_leave_author,
        horizon=13,
        split="validation",
    ),
)
"""Errands about people."""
