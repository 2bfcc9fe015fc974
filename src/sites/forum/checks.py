"""What the forum's tasks are judged by, beside what all sites share (``sites.checks``).

Pages are addressed by canonical URLs, and parts of pages by the ids that the templates give them (``#vote``,
``#comments``, ``#subscription``, ...).
"""

from __future__ import annotations

from urllib.parse import urlencode

from sites.checks import Check, PagesOf, Step, Target, both, has, shows
from sites.forum.data import ME, Thread

_FORUM = PagesOf("forum")
at, ends_at, equals, includes = _FORUM.at, _FORUM.ends_at, _FORUM.equals, _FORUM.includes


def voted(thread: Thread, vote: str = "Upvote") -> Target:
    """Expect the thread to carry the user's vote."""
    return includes(thread.path, "#vote", f"Take back {vote.lower()}")


def replied(thread: Thread, text: str) -> Target:
    """Expect the thread's latest comment to be the user's, with this text."""
    return includes(thread.path, "#comments .comment", ME, text)


def subscribed(forum: str) -> Target:
    """Expect the user to be subscribed to the forum."""
    return equals(f"/f/{forum}", "#subscription", "Unsubscribe")


def messaged(user: str, text: str) -> Target:
    """Expect the user to have sent this message."""
    return includes(f"/user/{user}/message", "#messages", f"{ME}: {text}")


def posted(forum: str, title: str, text: str | None = None) -> tuple[Target, ...]:
    """Expect the user's newest thread to be this one."""
    path = f"/user/{ME}/latest"
    wanted = {"#place": forum, "#title": title} | ({"#body": text} if text is not None else {})
    return tuple(equals(path, css, value) for css, value in wanted.items())


def searched(text: str) -> Check:
    """The agent sees the results of this search."""
    return at(f"/search?{urlencode({'q': text})}*")


def sorted_by(forum: str, order: str) -> Check:
    """The agent sees the forum's threads in this order."""
    return at(f"/f/{forum}?sort={order}")


def has_voted(thread: Thread, vote: str = "Upvote") -> Check:
    """The agent is on the thread's page and has voted for it."""
    return both(at(thread.path), has(f"Take back {vote.lower()}"))


def has_posted(forum: str, title: str) -> Check:
    """The agent has just posted this thread and sees it."""
    return both(at(f"/f/{forum}/*"), shows("was posted", title))


def filled_in(forum: str, title: str, text: str) -> Check:
    """The form for a new thread holds all of this."""
    return both(at("/submit*"), has("Forum", forum), has("Title", title), has("Text", text))


def finding_forum(forum: str) -> tuple[Step, Step, Step]:
    """Milestones on the way to a forum."""
    return (
        ("open the list of forums", at("/forums*")),
        ("find the forum", both(at("/forums*"), has(forum))),
        ("open the forum", at(f"/f/{forum}*")),
    )


def replying(thread: Thread, text: str) -> tuple[Step, Step]:
    """Milestones of a reply to an open thread."""
    return (
        ("write the comment", both(at(thread.path), has("Comment", text))),
        ("post the comment", both(at(thread.path), shows("was posted", text))),
    )


def messaging(user: str, text: str) -> tuple[Step, Step]:
    """Milestones of a message to a user whose form is open."""
    path = f"/user/{user}/message"
    return (
        ("write the message", both(at(path), has("Message", text))),
        ("send the message", both(at(path), shows("was sent", text))),
    )
