"""Errands about threads of the forum: votes, replies and posts in several places, thirteen to seventeen steps.

Owns templates of the collection ``errands`` (see ``sites.collections``); their pieces are the draws, checks and
skills of the forum's other templates.
"""

from __future__ import annotations

import random
import re

from records.episodes import Task
from sites import checks
from sites.forum import checks as c
from sites.forum import experts as e
from sites.forum import sampling as s
from sites.forum import words
from sites.forum.data import ME, ForumData, Thread
from sites.forum.state import SORTS, ForumState
from sites.old_form import Expert, Parameters, TaskTemplate, noting

_PROFILE = f"/user/{ME}"


def _shared_by_two(d: ForumData, rng: random.Random) -> Parameters:
    """Draw a title and two forums that have a thread of it, which others wrote."""
    while True:
        title = rng.choice(words.SHARED_TITLES)
        having = sorted(t.forum for t in d.threads.values() if t.title == title and t.author != ME)
        if len(having) > 1:
            first, second = rng.sample(having, 2)
            return {"title": title, "first": first, "second": second}


def _first_of_one_order(d: ForumData, rng: random.Random) -> Parameters:
    """Draw a forum that the user is not subscribed to and whose first thread is another one in each order."""
    while True:
        forum, state = s.new_forum(d, rng), ForumState(d, None)
        if len({state.threads(sort, forum=forum)[0].thread_id for sort in SORTS}) == len(SORTS):
            return {"forum": forum, "rank": rng.choice(sorted(s.RANKS))}


def _first(p: Parameters, d: ForumData) -> Thread:
    return s.first_thread(d, p["forum"], p["rank"])


def _shared(p: Parameters, d: ForumData) -> tuple[Thread, Thread]:
    return s.shared_thread(d, p["title"], p["first"]), s.shared_thread(d, p["title"], p["second"])


def _more_points(p: Parameters, d: ForumData) -> Thread:
    return max((s.first_thread(d, p[which], "top") for which in ("first", "second")), key=lambda t: t.points)


def _answer_both(task: Task) -> Expert:
    p = task.parameters
    for forum in (p["first"], p["second"]):
        yield from e.find_thread_in(p["title"], forum)
        yield from e.click("Upvote", "button", e.VOTE_RIVALS)
        yield from e.reply(p["text"])
    yield from e.finish()


def _join_in(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_forum(p["forum"])
    yield from e.click("Subscribe", "button")
    seen = yield from e.click(s.RANKS[p["rank"]].capitalize(), "link", e.SORT_RIVALS)
    yield from e.open_thread(seen, e.thread_links(seen)[0].name)
    yield from e.click("Upvote", "button", e.VOTE_RIVALS)
    yield from e.reply(p["text"])
    yield from e.click("Submit", "link")
    yield from e.post_thread(p["title"], p["body"])
    yield from e.finish()


def _show_top(forum: str) -> e.Skill:
    """Put the top threads of a forum first; to look at another one by mistake need not change what follows."""
    yield from e.click("Forums", "link")
    yield e.Intent("search", "Find forum", "searchbox", argument=forum)
    yield from e.click(forum, "link")
    return (yield from e.click("Top", "link"))


def _reply_to_better(task: Task) -> Expert:
    p, points, note = task.parameters, dict[str, int](), None
    for forum in (p["first"], p["second"]):
        seen = yield from noting(note, _show_top(forum))
        told = re.search(r"(\d+) points", " ".join(e.details(seen, e.thread_links(seen)[0].name)))
        if told is None:
            raise LookupError(f"expected the points of a thread, found {seen.page_text!r}")
        points[forum] = int(told[1])
        note = f"{forum} {told[0]}"
    if points[p["first"]] > points[p["second"]]:
        seen = yield from _show_top(p["first"])
    yield from e.open_thread(seen, e.thread_links(seen)[0].name)
    yield from e.click("Upvote", "button", e.VOTE_RIVALS)
    yield from e.reply(p["text"])
    yield from e.finish()


TEMPLATES = (
    TaskTemplate(
        name="forum.answer_both",
        site="forum",
        intent="Upvote the thread {title} in the forum {first} and in the forum {second}, and reply to both: {text}",
        sample=s.joined(_shared_by_two, s.draw(text=s.post)),
        evaluation=lambda p, d: checks.pages(
            *(c.voted(thread) for thread in _shared(p, d)), *(c.replied(thread, p["text"]) for thread in _shared(p, d))
        ),
        milestones=lambda p, d: checks.milestones(
            ("upvote the first thread", c.has_voted(_shared(p, d)[0])),
            c.replying(_shared(p, d)[0], p["text"])[1],
            ("upvote the second thread", c.has_voted(_shared(p, d)[1])),
            c.replying(_shared(p, d)[1], p["text"])[1],
        ),
        expert=_answer_both,
        horizon=15,
    ),
    TaskTemplate(
        name="forum.join_in",
        site="forum",
        intent="Subscribe to the forum {forum}, upvote its {rank} thread and reply to it: {text} Then submit a thread "
        "there with the title {title} and the text: {body}",
        sample=s.joined(_first_of_one_order, s.draw(text=s.post, title=s.new_title, body=s.post)),
        evaluation=lambda p, d: checks.pages(
            c.subscribed(p["forum"]),
            c.voted(_first(p, d)),
            c.replied(_first(p, d), p["text"]),
            *c.posted(p["forum"], p["title"], p["body"]),
        ),
        milestones=lambda p, d: checks.milestones(
            ("subscribe", checks.both(c.at(f"/f/{p['forum']}*"), checks.has("Unsubscribe"))),
            ("upvote the thread", c.has_voted(_first(p, d))),
            c.replying(_first(p, d), p["text"])[1],
            ("post the thread", c.has_posted(p["forum"], p["title"])),
        ),
        expert=_join_in,
        horizon=14,
    ),
    TaskTemplate(
        name="forum.crosspost_and_tell",
        site="forum",
        intent="Crosspost the {rank} thread of the forum {first} to the forum {second}, pin what you posted, and send "
        "the user {user} the message: {text}",
        sample=s.joined(s.two_forums, s.draw(rank=s.one_of(*s.RANKS), user=s.user, text=s.post)),
        evaluation=lambda p, d: checks.pages(
            *c.posted(p["second"], s.first_thread(d, p["first"], p["rank"]).title),
            c.includes(f"{_PROFILE}/latest", "#source", p["first"]),
            c.includes(_PROFILE, "#pinned", s.first_thread(d, p["first"], p["rank"]).title),
            c.messaged(p["user"], p["text"]),
        ),
        milestones=lambda p, d: checks.milestones(
            ("open the thread", c.at(s.first_thread(d, p["first"], p["rank"]).path)),
            ("post it", checks.both(c.at(f"/f/{p['second']}/*"), checks.shows(f"Crossposted from {p['first']}"))),
            ("pin it", checks.both(c.at(f"/f/{p['second']}/*"), checks.shows("is pinned"))),
            c.messaging(p["user"], p["text"])[1],
        ),
        expert=e.script(
            lambda t: e.open_ranked(t.parameters["first"], t.parameters["rank"]),
            lambda t: e.click("Crosspost", "link"),
            lambda t: e.choose_forum(t.parameters["second"]),
            lambda t: e.click("Post", "button"),
            lambda t: e.click("Pin", "button"),
            lambda t: e.open_user(t.parameters["user"]),
            lambda t: e.send_message(t.parameters["text"]),
        ),
        horizon=15,
    ),
    TaskTemplate(
        name="forum.reply_to_better",
        site="forum",
        intent="Of the top threads in the forums {first} and {second}, upvote the one with more points and reply to "
        "it: {text}",
        sample=s.joined(s.two_forums, s.draw(text=s.post)),
        evaluation=lambda p, d: checks.pages(c.voted(_more_points(p, d)), c.replied(_more_points(p, d), p["text"])),
        milestones=lambda p, d: checks.milestones(
            ("see both forums", c.sorted_by(p["second"], "top")),
            ("open the thread with more points", c.at(_more_points(p, d).path)),
            ("upvote it", c.has_voted(_more_points(p, d))),
            c.replying(_more_points(p, d), p["text"])[1],
        ),
        expert=_reply_to_better,
        horizon=lambda p, d: 13 if _more_points(p, d).forum == p["second"] else 17,
        split="test",
    ),
)
"""Errands about threads."""
