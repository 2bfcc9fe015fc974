"""What the forum's tasks are judged by, beside what all sites share (``sites.checks``).

Pages are addressed by canonical URLs, and parts of pages by the ids that the templates give them (``#vote``,
``#comments``, ``#subscription``, ...).
"""

from __future__ import annotations

from urllib.parse import urlencode

from sites.checks import Check, PagesOf, Step, Target, both, has
from sites.forum.data import ME, Thread

_FORUM = PagesOf("forum")
at, ends_at, equals, includes = _FORUM.at, _FORUM.ends_at, _FORUM.equals, _FORUM.includes
PROFILE = f"/user/{ME}"


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
    path = f"{PROFILE}/latest"
    wanted = {"#place": forum, "#title": title} | ({"#body": text} if text is not None else {})
    return tuple(equals(path, css, value) for css, value in wanted.items())


def crossposted(forum: str, title: str, source: str) -> tuple[Target, ...]:
    """Expect the user's newest thread to be one of the forum ``source``, posted again in ``forum``."""
    return *posted(forum, title), includes(f"{PROFILE}/latest", "#source", source)


def blocked(user: str) -> Target:
    """Expect the user to be blocked."""
    return equals(f"/user/{user}", "#block", "Unblock")


def searched(text: str) -> Check:
    """The agent sees the results of this search."""
    return at(f"/search?{urlencode({'q': text})}*")


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
