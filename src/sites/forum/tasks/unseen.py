"""The forum's templates of the validation and test splits: combinations of skills that training does not show."""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, both, has, pages, shows
from sites.experts import Expert
from sites.forum import sampling, skills
from sites.forum.checks import PROFILE, at, blocked, filled_in, includes, posted, replied, searched, subscribed, voted
from sites.forum.data import ForumData
from sites.forum.words import POSTS, RANKS
from sites.skills import click
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
            ("vote", skills.has_voted(thread, self.vote)),
        )

    def expert(self) -> Expert:
        yield from skills.find_thread_in(self.title, self.forum)
        yield from skills.vote(self.vote)


class BlockAuthor(TaskTemplate, name="forum.block_author", horizon=8, split="validation"):
    intent = "Block the author of the {rank} thread in the forum {forum}."
    forum: str = together(sampling.ranked_by_other)
    rank: str

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(blocked(data.first_thread(self.forum, self.rank).author))

    def milestones(self, data: ForumData) -> Milestones:
        thread = data.first_thread(self.forum, self.rank)
        return (
            ("sort the forum", skills.sort_forum.reached(self.forum, self.rank)),
            ("open the thread", at(thread.path)),
            ("open the author's profile", skills.open_author.reached(thread.author)),
            ("block the author", skills.block_author.reached(thread.author)),
        )

    def expert(self) -> Expert:
        seen = yield from skills.open_ranked(self.forum, self.rank)
        yield from skills.block_author(skills.author(seen))


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
            ("post the thread", skills.submit_thread.reached(self.forum, self.title, self.text)),
            ("pin it", both(at(f"/f/{self.forum}/*"), shows("is pinned", self.title))),
        )

    def expert(self) -> Expert:
        yield from skills.submit_thread(self.forum, self.title, self.text)
        yield from skills.pin()


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
            ("sort the forum", skills.sort_forum.reached(self.forum, self.rank)),
            ("open the thread", at(thread.path)),
            *skills.replying(thread, self.text),
        )

    def expert(self) -> Expert:
        yield from skills.open_ranked(self.forum, self.rank)
        yield from skills.reply(self.text)


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
            ("subscribe to the first forum", skills.subscribe.reached(self.first)),
            ("subscribe to the second forum", skills.subscribe.reached(self.second)),
            ("fill in the form", filled_in(self.second, self.title, self.text)),
            ("post the thread", skills.submit_thread.reached(self.second, self.title, self.text)),
        )

    def expert(self) -> Expert:
        yield from skills.subscribe(self.first)
        yield from skills.subscribe(self.second)
        yield from click("Submit", "link")
        yield from skills.post_thread(self.title, self.text)
