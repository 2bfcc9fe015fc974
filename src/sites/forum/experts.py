"""Scripted experts of the forum's tasks, composed of a few skills that many tasks share.

Owns what a careful person would do, as generators of intents over observations. Experts read pages and
the task's parameters, never the site's state. ``rivals`` names what a careless person might have
taken instead, so that imperfect demonstrations stay plausible.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from records.environment import Element, Observation
from records.episodes import Task
from sites.forum.sampling import RANKS
from sites.old_form import Expert, Intent, Skill

SORT_RIVALS = "Hot|New|Top"
VOTE_RIVALS = "Upvote|Downvote"
_NOT_TITLES = {"My profile", "My forums", "Edit profile", "Log in"}


def click(name: str, role: str | None = None, rivals: str | None = None) -> Skill:
    """Click the element of this name."""
    return (yield Intent("click", name, role, rivals=rivals))


def write(name: str, text: str) -> Skill:
    """Type into the field of this name."""
    return (yield Intent("type", name, "textbox", argument=text))


def finish(message: str = "done", rivals: str | None = None) -> Skill:
    """End the episode, with an answer where one was asked for."""
    return (yield Intent("exit", argument=message, rivals=rivals))


def open_forum(name: str) -> Skill:
    """Go to a forum by the list of forums."""
    yield from click("Forums", "link")
    yield Intent("search", "Find forum", "searchbox", argument=name)
    return (yield from click(name, "link", "[a-z]+"))


def open_ranked(name: str, rank: str) -> Skill:
    """Open the newest or top thread of a forum."""
    seen = yield from sort_forum(name, rank)
    return (yield from open_thread(seen, thread_links(seen)[0].name))


def sort_forum(name: str, rank: str) -> Skill:
    """Open a forum and put its newest or top threads first."""
    yield from open_forum(name)
    return (yield from click(RANKS[rank].capitalize(), "link", SORT_RIVALS))


def find_thread(title: str) -> Skill:
    """Find a thread by its title and open it."""
    seen = yield Intent("search", "Search", "searchbox", argument=title)
    return (yield from open_thread(seen, title))


def find_thread_in(title: str, forum: str) -> Skill:
    """Find a thread whose title several forums have, in one of them."""
    seen = yield Intent("search", "Search", "searchbox", argument=title)
    yield Intent("select", "Forum", "select", argument=forum, rivals="[a-z]+")
    seen = yield from click("Filter", "button")
    return (yield from open_thread(seen, title))


def open_thread(seen: Observation, title: str) -> Skill:
    """Open a listed thread; the other titles on the page are its rivals."""
    titles = sorted({link.name for link in thread_links(seen)})
    return (yield from click(title, "link", "|".join(re.escape(name) for name in titles)))


def open_user(name: str) -> Skill:
    """Find a user by name and open the profile; users of similar names are listed beside."""
    yield Intent("search", "Search", "searchbox", argument=name)
    stem = name.rstrip("0123456789")
    return (yield from click(name, "link", rf"{stem}\d*"))


def send_message(text: str) -> Skill:
    """On a user's profile: write and send a message."""
    yield from click("Message", "link")
    yield from write("Message", text)
    return (yield from click("Send", "button"))


def reply(text: str) -> Skill:
    """On a thread's page: write and post a comment."""
    yield from write("Comment", text)
    return (yield from click("Reply", "button"))


def post_thread(title: str, text: str) -> Skill:
    """On the form for a new thread whose forum is chosen: fill it in and post."""
    yield from write("Title", title)
    yield from write("Text", text)
    return (yield from click("Post", "button"))


def submit_thread(forum: str, title: str, text: str) -> Skill:
    """Submit a thread from any page."""
    yield from click("Submit", "link")
    yield from choose_forum(forum)
    return (yield from post_thread(title, text))


def choose_forum(forum: str) -> Skill:
    """On the form for a new thread: choose its forum."""
    return (yield Intent("select", "Forum", "select", argument=forum, rivals="[a-z]+"))


def thread_links(seen: Observation) -> list[Element]:
    """Return the links to threads on a list page: titles are the links of several words."""
    return [e for e in seen.elements if e.role == "link" and " " in e.name and e.name not in _NOT_TITLES]


def details(seen: Observation, title: str) -> list[str]:
    """Return what a list page says below a title: forum and author (where they vary), points, comments."""
    lines = seen.text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"link {title} "))
    return [part.strip() for part in lines[start + 1].split("|")]


def comment_count(seen: Observation) -> str:
    """Return the number of comments that a thread's page states."""
    found = re.search(r"points \| (\d+) comment", seen.text)
    if found is None:
        raise LookupError(f"no number of comments on {seen.url}; is this a thread's page?")
    return found[1]


def author_link(seen: Observation) -> Element:
    """Return the link to the author on a thread's page: it follows the link to the forum."""
    lines = iter(seen.elements)
    next(e for e in lines if e.role == "button" and e.name == "Log out")
    next(e for e in lines if e.role == "link")
    return next(e for e in lines if e.role == "link")


def open_author(seen: Observation) -> Skill:
    """On a thread's page: open its author's profile; those who commented are the rivals."""
    return (yield from click(author_link(seen).name, "link", r"[a-z]+\d*"))


def script(*steps: Callable[[Task], Skill]) -> Callable[[Task], Expert]:
    """Return the expert that carries out these steps in turn and then ends the episode."""

    def expert(task: Task) -> Expert:
        for step in steps:
            yield from step(task)
        yield from finish()

    return expert
