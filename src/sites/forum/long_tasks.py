"""The forum's long task templates: several skills in a row, eight to fifteen steps.

Owns their instructions, parameters, evaluations and milestones; the pieces come from ``sampling``,
``checks`` and ``experts``. Each of them is easily left unfinished or done to the wrong thread, user
or forum.
"""

from __future__ import annotations

from records.episodes import Task
from sites import checks
from sites.forum import checks as c
from sites.forum import experts as e
from sites.forum import sampling as s
from sites.forum.data import ME, ForumData, Thread
from sites.old_form import Expert, Parameters, TaskTemplate


def _ranked(p: Parameters, d: ForumData) -> Thread:
    return s.first_thread(d, p["forum"], p["rank"])


def _shared(p: Parameters, d: ForumData) -> Thread:
    return s.shared_thread(d, p["title"], p["forum"])


def _message_author(task: Task) -> Expert:
    seen = yield from e.open_ranked(task.parameters["forum"], task.parameters["rank"])
    yield from e.open_author(seen)
    yield from e.send_message(task.parameters["text"])
    yield from e.finish()


def _best_of_user(task: Task) -> Expert:
    yield from e.open_user(task.parameters["user"])
    seen = yield from e.click("Top", "link", "New|Top")
    yield from e.open_thread(seen, e.thread_links(seen)[0].name)
    yield from e.click("Upvote", "button", e.VOTE_RIVALS)
    yield from e.reply(task.parameters["text"])
    yield from e.finish()


LONG = (
    TaskTemplate(
        name="forum.best_of_user",
        site="forum",
        intent="Find the top thread of the user {user}, upvote it and reply: {text}",
        sample=s.draw(user=s.active_user, text=s.post),
        evaluation=lambda p, d: checks.pages(
            c.voted(s.best_thread(d, p["user"])), c.replied(s.best_thread(d, p["user"]), p["text"])
        ),
        milestones=lambda p, d: checks.milestones(
            ("open the user's profile", c.at(f"/user/{p['user']}*")),
            ("open the thread", c.at(s.best_thread(d, p["user"]).path)),
            ("upvote it", c.has_voted(s.best_thread(d, p["user"]))),
            c.replying(s.best_thread(d, p["user"]), p["text"])[1],
        ),
        expert=_best_of_user,
        horizon=8,
    ),
    TaskTemplate(
        name="forum.vote_and_reply",
        site="forum",
        intent="In the forum {forum}, find the thread {title}, upvote it and reply: {text}",
        sample=s.joined(s.shared_title, s.draw(text=s.post)),
        evaluation=lambda p, d: checks.pages(c.voted(_shared(p, d)), c.replied(_shared(p, d), p["text"])),
        milestones=lambda p, d: checks.milestones(
            ("search for the title", c.searched(p["title"])),
            ("open the thread", c.at(_shared(p, d).path)),
            ("upvote it", c.has_voted(_shared(p, d))),
            c.replying(_shared(p, d), p["text"])[1],
        ),
        expert=e.script(
            lambda t: e.find_thread_in(t.parameters["title"], t.parameters["forum"]),
            lambda t: e.click("Upvote", "button", e.VOTE_RIVALS),
            lambda t: e.reply(t.parameters["text"]),
        ),
        horizon=8,
    ),
    TaskTemplate(
        name="forum.subscribe_and_submit",
        site="forum",
        intent="Subscribe to the forum {forum} and submit a thread there with the title {title} and the text: {text}",
        sample=s.draw(forum=s.new_forum, title=s.new_title, text=s.post),
        evaluation=lambda p, d: checks.pages(c.subscribed(p["forum"]), *c.posted(p["forum"], p["title"], p["text"])),
        milestones=lambda p, d: checks.milestones(
            ("open the forum", c.at(f"/f/{p['forum']}*")),
            ("subscribe", checks.both(c.at(f"/f/{p['forum']}*"), checks.has("Unsubscribe"))),
            ("fill in the form", c.filled_in(p["forum"], p["title"], p["text"])),
            ("post the thread", c.has_posted(p["forum"], p["title"])),
        ),
        expert=e.script(
            lambda t: e.open_forum(t.parameters["forum"]),
            lambda t: e.click("Subscribe", "button"),
            lambda t: e.click("Submit", "link"),
            lambda t: e.post_thread(t.parameters["title"], t.parameters["text"]),
        ),
        horizon=9,
    ),
    TaskTemplate(
        name="forum.crosspost",
        site="forum",
        intent="Crosspost the {rank} thread of the forum {first} to the forum {second}.",
        sample=s.joined(s.two_forums, s.draw(rank=s.one_of(*s.RANKS))),
        evaluation=lambda p, d: checks.pages(
            *c.posted(p["second"], s.first_thread(d, p["first"], p["rank"]).title),
            c.includes(f"/user/{ME}/latest", "#source", p["first"]),
        ),
        milestones=lambda p, d: checks.milestones(
            ("sort the forum", c.sorted_by(p["first"], s.RANKS[p["rank"]])),
            ("open the thread", c.at(s.first_thread(d, p["first"], p["rank"]).path)),
            ("choose the other forum", checks.both(c.at("/submit?crosspost=*"), checks.has("Forum", p["second"]))),
            ("post it", checks.both(c.at(f"/f/{p['second']}/*"), checks.shows(f"Crossposted from {p['first']}"))),
        ),
        expert=e.script(
            lambda t: e.open_ranked(t.parameters["first"], t.parameters["rank"]),
            lambda t: e.click("Crosspost", "link"),
            lambda t: e.choose_forum(t.parameters["second"]),
            lambda t: e.click("Post", "button"),
        ),
        horizon=9,
    ),
    TaskTemplate(
        name="forum.message_author",
        site="forum",
        intent="Send the author of the {rank} thread in the forum {forum} the message: {text}",
        sample=s.joined(s.ranked_by_other, s.draw(text=s.post)),
        evaluation=lambda p, d: checks.pages(c.messaged(_ranked(p, d).author, p["text"])),
        milestones=lambda p, d: checks.milestones(
            ("sort the forum", c.sorted_by(p["forum"], s.RANKS[p["rank"]])),
            ("open the thread", c.at(_ranked(p, d).path)),
            ("open the author's profile", c.at(f"/user/{_ranked(p, d).author}*")),
            c.messaging(_ranked(p, d).author, p["text"])[1],
        ),
        expert=_message_author,
        horizon=10,
    ),
    TaskTemplate(
        name="forum.message_two",
        site="forum",
        intent="Send the users {first} and {second} the same message: {text}",
        sample=s.joined(s.two_users, s.draw(text=s.post)),
        evaluation=lambda p, d: checks.pages(c.messaged(p["first"], p["text"]), c.messaged(p["second"], p["text"])),
        milestones=lambda p, d: checks.milestones(
            ("open the first user's form", c.at(f"/user/{p['first']}/message")),
            c.messaging(p["first"], p["text"])[1],
            ("open the second user's form", c.at(f"/user/{p['second']}/message")),
            c.messaging(p["second"], p["text"])[1],
        ),
        expert=e.script(
            lambda t: e.open_user(t.parameters["first"]),
            lambda t: e.send_message(t.parameters["text"]),
            lambda t: e.open_user(t.parameters["second"]),
            lambda t: e.send_message(t.parameters["text"]),
        ),
        horizon=11,
    ),
    TaskTemplate(
        name="forum.vote_two_and_reply",
        site="forum",
        intent="Upvote the {rank} thread in the forum {first} and in the forum {second}. Reply to the second: {text}",
        sample=s.joined(s.two_forums, s.draw(rank=s.one_of(*s.RANKS), text=s.post)),
        evaluation=lambda p, d: checks.pages(
            c.voted(s.first_thread(d, p["first"], p["rank"])),
            c.voted(s.first_thread(d, p["second"], p["rank"])),
            c.replied(s.first_thread(d, p["second"], p["rank"]), p["text"]),
        ),
        milestones=lambda p, d: checks.milestones(
            ("open the first thread", c.at(s.first_thread(d, p["first"], p["rank"]).path)),
            ("upvote it", c.has_voted(s.first_thread(d, p["first"], p["rank"]))),
            ("upvote the second thread", c.has_voted(s.first_thread(d, p["second"], p["rank"]))),
            c.replying(s.first_thread(d, p["second"], p["rank"]), p["text"])[1],
        ),
        expert=e.script(
            lambda t: e.open_ranked(t.parameters["first"], t.parameters["rank"]),
            lambda t: e.click("Upvote", "button", e.VOTE_RIVALS),
            lambda t: e.open_ranked(t.parameters["second"], t.parameters["rank"]),
            lambda t: e.click("Upvote", "button", e.VOTE_RIVALS),
            lambda t: e.reply(t.parameters["text"]),
        ),
        horizon=15,
    ),
)
"""Templates of several skills."""
