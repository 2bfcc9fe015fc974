"""The forum's templates of the validation and test splits: combinations of skills that training does not show."""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, both, has, pages, shows
from sites.experts import Expert
from sites.forum import sampling
from sites.forum.checks import PROFILE, at, blocked, filled_in, includes, posted, replied, searched, subscribed, voted
from sites.forum.data import ForumData, Thread
from sites.forum.skills import (
    author,
    block_author,
    find_thread_in,
    has_voted,
    open_author,
    open_ranked,
    pin,
    post_thread,
    reply,
    replying,
    sort_forum,
    submit_thread,
    subscribe,
    vote,
)
from sites.forum.words import POSTS, RANKS
from sites.skills import click, finish
from sites.task_template import TaskTemplate, drawn, one_of, together


class VoteShared(TaskTemplate, name="forum.vote_shared", horizon=6, split="validation"):
    intent = "{vote} the thread {title} in the forum {forum}."
    title: str = together(sampling.shared_title)
    forum: str
    vote: str = one_of(("Upvote", "Downvote"))

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(voted(data.shared(self.title, self.forum), self.vote))

    def milestones(self, data: ForumData) -> Milestones:
        thread = data.shared(self.title, self.forum)
        return (
            ("search for the title", searched(self.title)),
            ("keep one forum's threads", at(f"/search?*forum={self.forum}")),
            ("open the thread", at(thread.path)),
            ("vote", has_voted(thread, self.vote)),
        )

    def expert(self) -> Expert:
        yield from find_thread_in(self.title, self.forum)
        yield from vote(self.vote)
        yield from finish()


class BlockAuthor(TaskTemplate, name="forum.block_author", horizon=8, split="validation"):
    intent = "Block the author of the {rank} thread in the forum {forum}."
    forum: str = together(sampling.ranked_by_other)
    rank: str

    def thread(self, data: ForumData) -> Thread:
        return data.first_thread(self.forum, self.rank)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(blocked(self.thread(data).author))

    def milestones(self, data: ForumData) -> Milestones:
        thread = self.thread(data)
        return (
            ("sort the forum", sort_forum.reached(self.forum, self.rank)),
            ("open the thread", at(thread.path)),
            ("open the author's profile", open_author.reached(thread.author)),
            ("block the author", block_author.reached(thread.author)),
        )

    def expert(self) -> Expert:
        seen = yield from open_ranked(self.forum, self.rank)
        yield from block_author(author(seen))
        yield from finish()


class SubmitAndPin(TaskTemplate, name="forum.submit_and_pin", horizon=7, split="test"):
    intent = "Submit a thread to the forum {forum} with the title {title} and the text: {text} Then pin it."
    forum: str = drawn(sampling.forum)
    title: str = drawn(sampling.new_title)
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(*posted(self.forum, self.title, self.text), includes(PROFILE, "#pinned", self.title))

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("choose the forum", both(at("/submit*"), has("Forum", self.forum))),
            ("fill in the form", filled_in(self.forum, self.title, self.text)),
            ("post the thread", submit_thread.reached(self.forum, self.title, self.text)),
            ("pin it", both(at(f"/f/{self.forum}/*"), shows("is pinned", self.title))),
        )

    def expert(self) -> Expert:
        yield from submit_thread(self.forum, self.title, self.text)
        yield from pin()
        yield from finish()


class ReplyFirst(TaskTemplate, name="forum.reply_first", horizon=8, split="test"):
    intent = "Reply to the {rank} thread in the forum {forum} with: {text}"
    forum: str = drawn(sampling.forum)
    rank: str = one_of(tuple(RANKS))
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(replied(data.first_thread(self.forum, self.rank), self.text))

    def milestones(self, data: ForumData) -> Milestones:
        thread = data.first_thread(self.forum, self.rank)
        return (
            ("sort the forum", sort_forum.reached(self.forum, self.rank)),
            ("open the thread", at(thread.path)),
            *replying(thread, self.text),
        )

    def expert(self) -> Expert:
        yield from open_ranked(self.forum, self.rank)
        yield from reply(self.text)
        yield from finish()


class SubscribeTwoAndSubmit(TaskTemplate, name="forum.subscribe_two_and_submit", horizon=13, split="test"):
    intent = (
        "Subscribe to the forums {first} and {second} and submit a thread to {second} "
        "with the title {title} and the text: {text}"
    )
    first: str = together(sampling.two_forums)
    second: str
    title: str = drawn(sampling.new_title)
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(subscribed(self.first), subscribed(self.second), *posted(self.second, self.title, self.text))

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("subscribe to the first forum", subscribe.reached(self.first)),
            ("subscribe to the second forum", subscribe.reached(self.second)),
            ("fill in the form", filled_in(self.second, self.title, self.text)),
            ("post the thread", submit_thread.reached(self.second, self.title, self.text)),
        )

    def expert(self) -> Expert:
        yield from subscribe(self.first)
        yield from subscribe(self.second)
        yield from click("Submit", "link")
        yield from post_thread(self.title, self.text)
        yield from finish()


TEMPLATES = (VoteShared, BlockAuthor, SubmitAndPin, ReplyFirst, SubscribeTwoAndSubmit)
