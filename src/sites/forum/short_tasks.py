"""The forum's short task templates: one skill each, up to seven steps.

Owns their instructions, parameters, evaluations and milestones; the pieces come from ``sampling``,
``checks`` and ``experts``.
"""

from __future__ import annotations

from urllib.parse import urlencode

from records.episodes import Task
from sites import checks
from sites.forum import checks as c
from sites.forum import experts as e
from sites.forum import sampling as s
from sites.forum.data import ME
from sites.old_form import Expert, TaskTemplate

_PROFILE = f"/user/{ME}"


def _search(task: Task) -> Expert:
    yield e.Intent("search", "Search", "searchbox", argument=task.parameters["words"])
    yield from e.finish()


def _count_comments(task: Task) -> Expert:
    seen = yield from e.find_thread(task.parameters["title"])
    yield from e.finish(e.comment_count(seen))


def _first_author(task: Task) -> Expert:
    seen = yield from e.sort_forum(task.parameters["forum"], task.parameters["rank"])
    author = e.details(seen, e.thread_links(seen)[0].name)[-3]
    yield from e.finish(author, r"[a-z]+\d*(?= \| \d+ points)")


def _edit_thread(task: Task) -> Expert:
    seen = yield from e.click("My profile", "link")
    yield from e.open_thread(seen, task.parameters["title"])
    yield from e.click("Edit", "link")
    yield from e.write("Text", task.parameters["text"])
    yield from e.click("Save", "button")
    yield from e.finish()


SHORT = (
    TaskTemplate(
        name="forum.search",
        site="forum",
        intent="Search for {words}.",
        sample=s.draw(words=s.search_words),
        evaluation=lambda p, d: c.ends_at(f"/search?{urlencode({'q': p['words']})}"),
        milestones=lambda p, d: checks.milestones(
            ("start on the front page", c.at("/*")),
            ("see a search box", checks.has("Search", role="searchbox")),
            ("search for something", c.at("/search*")),
            ("search for the words", c.searched(p["words"])),
        ),
        expert=_search,
        horizon=2,
    ),
    TaskTemplate(
        name="forum.count_comments",
        site="forum",
        intent="How many comments does the thread {title} have? Answer with a number.",
        sample=s.thread_by_title,
        evaluation=lambda p, d: checks.answer(
            str(len(d.comments_by_thread.get(s.titled(d, p["title"]).thread_id, ())))
        ),
        milestones=lambda p, d: checks.milestones(
            ("search for something", c.at("/search*")),
            ("search for the title", c.searched(p["title"])),
            ("see the thread in a list", checks.has(p["title"])),
            ("open the thread", c.at(s.titled(d, p["title"]).path)),
        ),
        expert=_count_comments,
        horizon=3,
    ),
    TaskTemplate(
        name="forum.first_author",
        site="forum",
        intent="Who wrote the {rank} thread in the forum {forum}? Answer with the user name.",
        sample=s.draw(forum=s.forum, rank=s.one_of(*s.RANKS)),
        evaluation=lambda p, d: checks.answer(s.first_thread(d, p["forum"], p["rank"]).author),
        milestones=lambda p, d: checks.milestones(
            *c.finding_forum(p["forum"]),
            ("sort the forum", c.sorted_by(p["forum"], s.RANKS[p["rank"]])),
        ),
        expert=_first_author,
        horizon=5,
    ),
    TaskTemplate(
        name="forum.open_sorted",
        site="forum",
        intent="Open the forum {forum} and show the {rank} threads first.",
        sample=s.draw(forum=s.forum, rank=s.one_of(*s.RANKS)),
        evaluation=lambda p, d: c.ends_at(f"/f/{p['forum']}?sort={s.RANKS[p['rank']]}"),
        milestones=lambda p, d: checks.milestones(
            *c.finding_forum(p["forum"]),
            ("sort the forum", c.sorted_by(p["forum"], s.RANKS[p["rank"]])),
        ),
        expert=e.script(lambda t: e.sort_forum(t.parameters["forum"], t.parameters["rank"])),
        horizon=5,
    ),
    TaskTemplate(
        name="forum.subscribe",
        site="forum",
        intent="Subscribe to the forum {forum}.",
        sample=s.draw(forum=s.new_forum),
        evaluation=lambda p, d: checks.pages(c.subscribed(p["forum"])),
        milestones=lambda p, d: checks.milestones(
            *c.finding_forum(p["forum"]),
            ("subscribe", checks.both(c.at(f"/f/{p['forum']}*"), checks.has("Unsubscribe"))),
        ),
        expert=e.script(lambda t: e.open_forum(t.parameters["forum"]), lambda t: e.click("Subscribe", "button")),
        horizon=5,
    ),
    TaskTemplate(
        name="forum.change_bio",
        site="forum",
        intent="Change your bio to: {bio}",
        sample=s.draw(bio=s.bio),
        evaluation=lambda p, d: checks.pages(c.equals(_PROFILE, "#bio", p["bio"])),
        milestones=lambda p, d: checks.milestones(
            ("open the own profile", c.at(f"{_PROFILE}*")),
            ("open the form", c.at("/profile")),
            ("write the bio", checks.has("Bio", p["bio"])),
            ("save it", checks.both(c.at(_PROFILE), checks.shows("Your profile was changed", p["bio"]))),
        ),
        expert=e.script(
            lambda t: e.click("My profile", "link"),
            lambda t: e.click("Edit profile", "link"),
            lambda t: e.write("Bio", t.parameters["bio"]),
            lambda t: e.click("Save", "button"),
        ),
        horizon=5,
    ),
    TaskTemplate(
        name="forum.reply",
        site="forum",
        intent="Reply to the thread {title} with: {text}",
        sample=s.joined(s.thread_by_title, s.draw(text=s.post)),
        evaluation=lambda p, d: checks.pages(c.replied(s.titled(d, p["title"]), p["text"])),
        milestones=lambda p, d: checks.milestones(
            ("search for the title", c.searched(p["title"])),
            ("open the thread", c.at(s.titled(d, p["title"]).path)),
            *c.replying(s.titled(d, p["title"]), p["text"]),
        ),
        expert=e.script(lambda t: e.find_thread(t.parameters["title"]), lambda t: e.reply(t.parameters["text"])),
        horizon=5,
    ),
    TaskTemplate(
        name="forum.edit_thread",
        site="forum",
        intent="Change the text of your thread {title} to: {text}",
        sample=s.joined(s.own_thread, s.draw(text=s.post)),
        evaluation=lambda p, d: checks.pages(c.equals(s.titled(d, p["title"]).path, "#body", p["text"])),
        milestones=lambda p, d: checks.milestones(
            ("open the own profile", c.at(f"{_PROFILE}*")),
            ("open the thread", c.at(s.titled(d, p["title"]).path)),
            (
                "write the text",
                checks.both(c.at(f"{s.titled(d, p['title']).path}/edit"), checks.has("Text", p["text"])),
            ),
            ("save it", checks.both(c.at(s.titled(d, p["title"]).path), checks.shows("was changed", p["text"]))),
        ),
        expert=_edit_thread,
        horizon=6,
    ),
    TaskTemplate(
        name="forum.message",
        site="forum",
        intent="Send the user {user} the message: {text}",
        sample=s.draw(user=s.user, text=s.post),
        evaluation=lambda p, d: checks.pages(c.messaged(p["user"], p["text"])),
        milestones=lambda p, d: checks.milestones(
            ("open the user's profile", c.at(f"/user/{p['user']}")),
            ("open the form", c.at(f"/user/{p['user']}/message")),
            *c.messaging(p["user"], p["text"]),
        ),
        expert=e.script(lambda t: e.open_user(t.parameters["user"]), lambda t: e.send_message(t.parameters["text"])),
        horizon=6,
    ),
    TaskTemplate(
        name="forum.submit",
        site="forum",
        intent="Submit a thread to the forum {forum} with the title {title} and the text: {text}",
        sample=s.draw(forum=s.forum, title=s.new_title, text=s.post),
        evaluation=lambda p, d: checks.pages(*c.posted(p["forum"], p["title"], p["text"])),
        milestones=lambda p, d: checks.milestones(
            ("open the form", c.at("/submit*")),
            ("choose the forum", checks.both(c.at("/submit*"), checks.has("Forum", p["forum"]))),
            ("write title and text", c.filled_in(p["forum"], p["title"], p["text"])),
            ("post it", checks.both(c.at(f"/f/{p['forum']}/*"), checks.shows("was posted", p["title"], p["text"]))),
        ),
        expert=e.script(lambda t: e.submit_thread(t.parameters["forum"], t.parameters["title"], t.parameters["text"])),
        horizon=6,
    ),
    TaskTemplate(
        name="forum.vote_first",
        site="forum",
        intent="{vote} the {rank} thread in the forum {forum}.",
        sample=s.draw(vote=s.one_of("Upvote", "Downvote"), forum=s.forum, rank=s.one_of(*s.RANKS)),
        evaluation=lambda p, d: checks.pages(c.voted(s.first_thread(d, p["forum"], p["rank"]), p["vote"])),
        milestones=lambda p, d: checks.milestones(
            ("open the forum", c.at(f"/f/{p['forum']}*")),
            ("sort the forum", c.sorted_by(p["forum"], s.RANKS[p["rank"]])),
            ("open the thread", c.at(s.first_thread(d, p["forum"], p["rank"]).path)),
            ("vote", c.has_voted(s.first_thread(d, p["forum"], p["rank"]), p["vote"])),
        ),
        expert=e.script(
            lambda t: e.open_ranked(t.parameters["forum"], t.parameters["rank"]),
            lambda t: e.click(t.parameters["vote"], "button", e.VOTE_RIVALS),
        ),
        horizon=7,
    ),
)
"""Templates of one skill."""
