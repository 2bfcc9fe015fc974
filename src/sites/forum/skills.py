"""The skills of the forum's experts, and the milestones of what is done to a thread or a user."""

from __future__ import annotations

import re

from records.environment import Element, Observation
from sites.checks import Check, Step, both, has, shows
from sites.experts import Actions, read
from sites.forum.checks import PROFILE, at
from sites.forum.data import Thread
from sites.forum.words import RANKS
from sites.skills import choose, click, put, search, skill

_NOT_TITLES = {"My profile", "My forums", "Edit profile", "Log in"}


@skill(lambda name, careful=False: at(f"/f/{name}*"))
def open_forum(name: str, careful: bool = False) -> Actions:
    """Go to a forum by the list of forums; the ``careful`` take no other one."""
    yield from click("Forums", "link")
    yield from search(name, "Find forum")
    return (yield from click(name, "link", None if careful else "[a-z]+"))


@skill(lambda forum: both(at(f"/f/{forum}*"), has("Unsubscribe")))
def subscribe(forum: str) -> Actions:
    """Open a forum and subscribe to it."""
    yield from open_forum(forum)
    return (yield from click("Subscribe", "button"))


@skill(lambda forum: both(both(at(f"/f/{forum}*"), has("Subscribe")), shows("You are no longer subscribed")))
def unsubscribe(forum: str) -> Actions:
    """Open a forum and unsubscribe from it."""
    yield from open_forum(forum)
    return (yield from click("Unsubscribe", "button"))


@skill(lambda rank, careful=False: at(f"/f/*?sort={RANKS[rank]}"))
def show_first(rank: str, careful: bool = False) -> Actions:
    """On a forum's page: put its newest or top threads first; the ``careful`` take no other order."""
    return (yield from click(RANKS[rank].capitalize(), "link", None if careful else "Hot|New|Top"))


@skill(lambda name, rank, careful=False: at(f"/f/{name}?sort={RANKS[rank]}"))
def sort_forum(name: str, rank: str, careful: bool = False) -> Actions:
    """Open a forum and put its newest or top threads first."""
    yield from open_forum(name, careful)
    return (yield from show_first(rank, careful))


@skill(lambda seen: at("/f/*/*"))
def open_first(seen: Observation) -> Actions:
    """Open the first thread that is listed."""
    return (yield from open_thread(seen, thread_links(seen)[0].name))


@skill(lambda name, rank: at(f"/f/{name}/*"))
def open_ranked(name: str, rank: str) -> Actions:
    """Open the newest or top thread of a forum."""
    seen = yield from sort_forum(name, rank)
    return (yield from open_first(seen))


@skill(lambda seen, title: both(at("/f/*/*"), shows(title)))
def open_thread(seen: Observation, title: str) -> Actions:
    """Open a listed thread; the other titles on the page are its rivals."""
    titles = sorted({link.name for link in thread_links(seen)})
    return (yield from click(title, "link", "|".join(re.escape(name) for name in titles)))


@skill(lambda title: both(at("/f/*/*"), shows(title)))
def find_thread(title: str) -> Actions:
    """Find a thread by its title and open it."""
    seen = yield from search(title)
    return (yield from open_thread(seen, title))


@skill(lambda title, forum: both(at(f"/f/{forum}/*"), shows(title)))
def find_thread_in(title: str, forum: str) -> Actions:
    """Find a thread whose title several forums have, in one of them."""
    yield from search(title)
    yield from choose("Forum", forum, "[a-z]+")
    seen = yield from click("Filter", "button")
    return (yield from open_thread(seen, title))


@skill(lambda title: both(at("/f/*/*"), shows(title)))
def open_own(title: str) -> Actions:
    """Open one of the user's own threads by their profile."""
    seen = yield from click("My profile", "link")
    return (yield from open_thread(seen, title))


@skill(lambda choice="Upvote": has(f"Take back {choice.lower()}"))
def vote(choice: str = "Upvote") -> Actions:
    """On a thread's page: vote for it, or against it."""
    return (yield from click(choice, "button", "Upvote|Downvote"))


@skill(lambda text: shows("was posted", text))
def reply(text: str) -> Actions:
    """On a thread's page: write and post a comment."""
    yield from put("Comment", text)
    return (yield from click("Reply", "button"))


@skill(lambda text: shows("was changed", text))
def edit_text(text: str) -> Actions:
    """On the page of an own thread: change its text."""
    yield from click("Edit", "link")
    yield from put("Text", text)
    return (yield from click("Save", "button"))


@skill(lambda: shows("is pinned"))
def pin() -> Actions:
    """On the page of an own thread: pin it to the profile."""
    return (yield from click("Pin", "button"))


@skill(lambda title, text: shows("was posted", title))
def post_thread(title: str, text: str) -> Actions:
    """On a forum's page, or on the form for a new thread whose forum is chosen: post a thread."""
    yield from put("Title", title)
    yield from put("Text", text)
    return (yield from click("Post", "button"))


@skill(lambda forum, title, text: both(at(f"/f/{forum}/*"), post_thread.reached(title, text)))
def submit_thread(forum: str, title: str, text: str) -> Actions:
    """Submit a thread from any page."""
    yield from click("Submit", "link")
    yield from choose("Forum", forum, "[a-z]+")
    return (yield from post_thread(title, text))


@skill(lambda first, rank, second: both(at(f"/f/{second}/*"), shows(f"Crossposted from {first}")))
def crosspost(first: str, rank: str, second: str) -> Actions:
    """Post the newest or top thread of the first forum again in the second."""
    yield from open_ranked(first, rank)
    yield from click("Crosspost", "link")
    yield from choose("Forum", second, "[a-z]+")
    return (yield from click("Post", "button"))


@skill(lambda bio: both(at(PROFILE), shows("Your profile was changed", bio)))
def change_bio(bio: str) -> Actions:
    """Change the biography in the user's own profile."""
    yield from click("My profile", "link")
    yield from click("Edit profile", "link")
    yield from put("Bio", bio)
    return (yield from click("Save", "button"))


@skill(lambda name: at(f"/user/{name}*"))
def open_user(name: str) -> Actions:
    """Find a user by name and open the profile; users of similar names are listed beside."""
    yield from search(name)
    stem = name.rstrip("0123456789")
    return (yield from click(name, "link", rf"{stem}\d*"))


@skill(lambda name: at(f"/user/{name}*"))
def open_author(name: str) -> Actions:
    """On a thread's page: open its author's profile; those who commented are the rivals."""
    return (yield from click(name, "link", r"[a-z]+\d*"))


@skill(lambda author: shows(f"You blocked {author}."))
def block_author(author: str) -> Actions:
    """On a thread's page: block its author."""
    yield from open_author(author)
    return (yield from click("Block", "button"))


@skill(lambda text: shows("was sent", text))
def send_message(text: str) -> Actions:
    """On a user's profile: write and send a message."""
    yield from click("Message", "link")
    yield from put("Message", text)
    return (yield from click("Send", "button"))


def has_voted(thread: Thread, choice: str = "Upvote") -> Check:
    """The agent is on the thread's page and has voted for it."""
    return both(at(thread.path), vote.reached(choice))


def has_replied(thread: Thread, text: str) -> Check:
    """The agent is on the thread's page and has just replied to it."""
    return both(at(thread.path), reply.reached(text))


def has_messaged(user: str, text: str) -> Check:
    """The agent sees the messages to the user and has just sent this one."""
    return both(at(f"/user/{user}/message"), send_message.reached(text))


def replying(thread: Thread, text: str) -> tuple[Step, Step]:
    """Milestones of a reply to an open thread."""
    written = both(at(thread.path), has("Comment", text))
    return ("write the comment", written), ("post the comment", has_replied(thread, text))


def messaging(user: str, text: str) -> tuple[Step, Step]:
    """Milestones of a message to a user whose form is open."""
    written = both(at(f"/user/{user}/message"), has("Message", text))
    return ("write the message", written), ("send the message", has_messaged(user, text))


def thread_links(seen: Observation) -> list[Element]:
    """Return the links to threads on a list page: titles are the links of several words."""
    return [e for e in seen.elements if e.role == "link" and " " in e.name and e.name not in _NOT_TITLES]


def details(seen: Observation, title: str) -> list[str]:
    """Return what a list page says below a title: forum and author (where they vary), points, comments."""
    lines = seen.text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"link {title} "))
    return [part.strip() for part in lines[start + 1].split("|")]


def author(seen: Observation) -> str:
    """Return the author that a thread's page names: the link that follows the one to the forum."""
    lines = iter(seen.elements)
    next(e for e in lines if e.role == "button" and e.name == "Log out")
    next(e for e in lines if e.role == "link")
    return next(e for e in lines if e.role == "link").name


def comment_count(seen: Observation) -> str:
    """Return the number of comments that a thread's page states."""
    return read(seen, r"points \| (\d+) comment")
