"""The forum's task templates of the validation and test splits, which training never sees.

Owns their instructions, parameters, evaluations and milestones. They use the skills of the training
templates in combinations that training does not show.
"""

from __future__ import annotations

from records.episodes import Task
from sites import checks
from sites.forum import checks as c
from sites.forum import experts as e
from sites.forum import sampling as s
from sites.forum.data import ME
from sites.old_form import Expert, TaskTemplate


def _block_author(task: Task) -> Expert:
    seen = yield from e.open_ranked(task.parameters["forum"], task.parameters["rank"])
    yield from e.open_author(seen)
    yield from e.click("Block", "button")
    yield from e.finish()


VALIDATION = (
    TaskTemplate(
        name="forum.vote_shared",
        site="forum",
        intent="{vote} the thread {title} in the forum {forum}.",
        sample=s.joined(s.shared_title, s.draw(vote=s.one_of("Upvote", "Downvote"))),
        evaluation=lambda p, d: checks.pages(c.voted(s.shared_thread(d, p["title"], p["forum"]), p["vote"])),
        milestones=lambda p, d: checks.milestones(
            ("search for the title", c.searched(p["title"])),
            ("keep one forum's threads", c.at(f"/search?*forum={p['forum']}")),
            ("open the thread", c.at(s.shared_thread(d, p["title"], p["forum"]).path)),
            ("vote", c.has_voted(s.shared_thread(d, p["title"], p["forum"]), p["vote"])),
        ),
        expert=e.script(
            lambda t: e.find_thread_in(t.parameters["title"], t.parameters["forum"]),
            lambda t: e.click(t.parameters["vote"], "button", e.VOTE_RIVALS),
        ),
        horizon=6,
        split="validation",
    ),
    TaskTemplate(
        name="forum.block_author",
        site="forum",
        intent="Block the author of the {rank} thread in the forum {forum}.",
        sample=s.ranked_by_other,
        evaluation=lambda p, d: checks.pages(
            c.equals(f"/user/{s.first_thread(d, p['forum'], p['rank']).author}", "#block", "Unblock")
        ),
        milestones=lambda p, d: checks.milestones(
            ("sort the forum", c.sorted_by(p["forum"], s.RANKS[p["rank"]])),
            ("open the thread", c.at(s.first_thread(d, p["forum"], p["rank"]).path)),
            ("open the author's profile", c.at(f"/user/{s.first_thread(d, p['forum'], p['rank']).author}*")),
            ("block the author", checks.shows(f"You blocked {s.first_thread(d, p['forum'], p['rank']).author}.")),
        ),
        expert=_block_author,
        horizon=8,
        split="validation",
    ),
)
"""Templates for choosing settings."""

TEST = (
    TaskTemplate(
        name="forum.submit_and_pin",
        site="forum",
        intent="Submit a thread to the forum {forum} with the title {title} and the text: {text} Then pin it.",
        sample=s.draw(forum=s.forum, title=s.new_title, text=s.post),
        evaluation=lambda p, d: checks.pages(
            *c.posted(p["forum"], p["title"], p["text"]), c.includes(f"/user/{ME}", "#pinned", p["title"])
        ),
        milestones=lambda p, d: checks.milestones(
            ("choose the forum", checks.both(c.at("/submit*"), checks.has("Forum", p["forum"]))),
            ("fill in the form", c.filled_in(p["forum"], p["title"], p["text"])),
            ("post the thread", c.has_posted(p["forum"], p["title"])),
            ("pin it", checks.both(c.at(f"/f/{p['forum']}/*"), checks.shows("is pinned", p["title"]))),
        ),
        expert=e.script(
            lambda t: e.submit_thread(t.parameters["forum"], t.parameters["title"], t.parameters["text"]),
            lambda t: e.click("Pin", "button"),
        ),
        horizon=7,
        split="test",
    ),
    TaskTemplate(
        name="forum.reply_first",
        site="forum",
        intent="Reply to the {rank} thread in the forum {forum} with: {text}",
        sample=s.draw(forum=s.forum, rank=s.one_of(*s.RANKS), text=s.post),
        evaluation=lambda p, d: checks.pages(c.replied(s.first_thread(d, p["forum"], p["rank"]), p["text"])),
        milestones=lambda p, d: checks.milestones(
            ("sort the forum", c.sorted_by(p["forum"], s.RANKS[p["rank"]])),
            ("open the thread", c.at(s.first_thread(d, p["forum"], p["rank"]).path)),
            *c.replying(s.first_thread(d, p["forum"], p["rank"]), p["text"]),
        ),
        expert=e.script(
            lambda t: e.open_ranked(t.parameters["forum"], t.parameters["rank"]),
            lambda t: e.reply(t.parameters["text"]),
        ),
        horizon=8,
        split="test",
    ),
    TaskTemplate(
        name="forum.subscribe_two_and_submit",
        site="forum",
        intent="Subscribe to the forums {first} and {second} and submit a thread to {second} "
        "with the title {title} and the text: {text}",
        sample=s.joined(s.two_forums, s.draw(title=s.new_title, text=s.post)),
        evaluation=lambda p, d: checks.pages(
            c.subscribed(p["first"]), c.subscribed(p["second"]), *c.posted(p["second"], p["title"], p["text"])
        ),
        milestones=lambda p, d: checks.milestones(
            ("subscribe to the first forum", checks.both(c.at(f"/f/{p['first']}*"), checks.has("Unsubscribe"))),
            ("subscribe to the second forum", checks.both(c.at(f"/f/{p['second']}*"), checks.has("Unsubscribe"))),
            ("fill in the form", c.filled_in(p["second"], p["title"], p["text"])),
            ("post the thread", c.has_posted(p["second"], p["title"])),
        ),
        expert=e.script(
            lambda t: e.open_forum(t.parameters["first"]),
            lambda t: e.click("Subscribe", "button"),
            lambda t: e.open_forum(t.parameters["second"]),
            lambda t: e.click("Subscribe", "button"),
            lambda t: e.click("Submit", "link"),
            lambda t: e.post_thread(t.parameters["title"], t.parameters["text"]),
        ),
        horizon=13,
        split="test",
    ),
)
"""Templates for reported results."""
