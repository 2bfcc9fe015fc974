"""What tasks are judged by: WebArena evaluations and milestones, from a few shared pieces.

Owns the shapes of both. Pages are addressed by canonical URLs, and parts of pages by the ids that the
templates give them (``#vote``, ``#comments``, ``#subscription``, ...).
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from replay.records import Subgoal
from sites.forum.data import ME, Thread

SITE = "__FORUM__"
Check = dict[str, Any]
Step = tuple[str, Check]
Four = tuple[Subgoal, Subgoal, Subgoal, Subgoal]


def evaluation(kind: str, **fields: Any) -> dict[str, Any]:
    """Return a complete WebArena ``eval`` object of one evaluator."""
    empty: dict[str, Any] = {"reference_answers": None, "reference_url": "", "program_html": [], "string_note": ""}
    return {"eval_types": [kind], **empty, "reference_answer_raw_annotation": "", **fields}


def answer(text: str) -> dict[str, Any]:
    """Expect this answer and no other."""
    references = {"exact_match": text}
    return evaluation("string_match", reference_answers=references, reference_answer_raw_annotation=text)


def ends_at(path: str) -> dict[str, Any]:
    """Expect the episode to end on this page."""
    return evaluation("url_match", reference_url=f"{SITE}{path}", url_note="GOLD in PRED")


def pages(*targets: dict[str, Any]) -> dict[str, Any]:
    """Expect these contents of pages."""
    return evaluation("program_html", program_html=list(targets))


def content(path: str, css: str, *, exact: str | None = None, include: tuple[str, ...] = ()) -> dict[str, Any]:
    """Expect the text of the element ``css`` on the page ``path`` to be this, or to include these."""
    required = {"exact_match": exact} if exact is not None else {"must_include": list(include)}
    locator = f"document.querySelector('{css}').outerText"
    return {"url": f"{SITE}{path}", "locator": locator, "required_contents": required}


def voted(thread: Thread, vote: str = "Upvote") -> dict[str, Any]:
    """Expect the thread to carry the user's vote."""
    return content(thread.path, "#vote", include=(f"Take back {vote.lower()}",))


def replied(thread: Thread, text: str) -> dict[str, Any]:
    """Expect the thread's latest comment to be the user's, with this text."""
    return content(thread.path, "#comments .comment", include=(ME, text))


def subscribed(forum: str) -> dict[str, Any]:
    """Expect the user to be subscribed to the forum."""
    return content(f"/f/{forum}", "#subscription", exact="Unsubscribe")


def messaged(user: str, text: str) -> dict[str, Any]:
    """Expect the user to have sent this message."""
    return content(f"/user/{user}/message", "#messages", include=(f"{ME}: {text}",))


def posted(forum: str, title: str, text: str | None = None) -> tuple[dict[str, Any], ...]:
    """Expect the user's newest thread to be this one."""
    path = f"/user/{ME}/latest"
    wanted = {"#place": forum, "#title": title} | ({"#body": text} if text is not None else {})
    return tuple(content(path, css, exact=value) for css, value in wanted.items())


def at(path: str) -> Check:
    """The agent is on this page; ``*`` stands for anything."""
    return {"url": f"{SITE}{path}"}


def shows(*texts: str) -> Check:
    """The page says all of this."""
    return {"text": list(texts)}


def has(name: str, value: str | None = None, role: str | None = None) -> Check:
    """The page has this element, with this value."""
    optional = {"value": value, "role": role}
    return {"element": {"name": name, **{key: text for key, text in optional.items() if text is not None}}}


def both(*checks: Check) -> Check:
    """All of these hold at the same time."""
    return {"all": list(checks)}


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


def milestones(*steps: Step) -> Four:
    """Return the four milestones of a task from (description, check) pairs."""
    if len(steps) != 4:
        raise ValueError(f"a task has exactly four milestones, found {len(steps)}")
    first, second, third, fourth = (Subgoal(*step) for step in steps)
    return first, second, third, fourth
