"""Errands about people on the forum: one's own posts and settings, authors, blocking; thirteen to nineteen steps."""

from __future__ import annotations

import random
from typing import Self

from sites.checks import Evaluation, Milestones, both, pages
from sites.experts import Expert
from sites.forum import sampling, skills
from sites.forum.checks import PROFILE, at, blocked, equals, includes, messaged, subscribed, voted
from sites.forum.data import MY_SUBSCRIPTIONS, ForumData
from sites.forum.words import POSTS
from sites.task_template import TaskTemplate, drawn, one_of, together


class PutOwnInOrder(TaskTemplate, name="forum.put_own_in_order", horizon=13):
    intent = "Change the text of your thread {first} to {text}, pin your thread {second}, and change your bio to: {bio}"
    first: str
    second: str
    text: str = one_of(POSTS)
    bio: str = drawn(sampling.bio)

    @classmethod
    def sample(cls, data: ForumData, rng: random.Random) -> Self:
        while True:
            first, second = sampling.own_title(data, rng), sampling.own_title(data, rng)
            if first != second:
                return cls.draw(data, rng, first=first, second=second)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(
            equals(data.titled(self.first).path, "#body", self.text),
            includes(PROFILE, "#pinned", self.second),
            equals(PROFILE, "#bio", self.bio),
        )

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("change the text", both(at(data.titled(self.first).path), skills.edit_text.reached(self.text))),
            ("pin the other thread", both(at(data.titled(self.second).path), skills.pin.reached())),
            ("open the form of the profile", at("/profile")),
            ("change the bio", skills.change_bio.reached(self.bio)),
        )

    def expert(self) -> Expert:
        yield from skills.open_own(self.first)
        yield from skills.edit_text(self.text)
        yield from skills.open_own(self.second)
        yield from skills.pin()
        yield from skills.change_bio(self.bio)


class ChangeSettings(TaskTemplate, name="forum.change_settings", horizon=17):
    intent = "Change your bio to {bio}, unsubscribe from the forum {mine} and subscribe to {first} and {second}."
    bio: str = drawn(sampling.bio)
    mine: str = one_of(MY_SUBSCRIPTIONS)
    first: str = together(sampling.two_forums)
    second: str

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(
            equals(PROFILE, "#bio", self.bio),
            equals(f"/f/{self.mine}", "#subscription", "Subscribe"),
            subscribed(self.first),
            subscribed(self.second),
        )

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("change the bio", skills.change_bio.reached(self.bio)),
            ("leave the forum", skills.unsubscribe.reached(self.mine)),
            ("subscribe to the first forum", skills.subscribe.reached(self.first)),
            ("subscribe to the second forum", skills.subscribe.reached(self.second)),
        )

    def expert(self) -> Expert:
        yield from skills.change_bio(self.bio)
        yield from skills.unsubscribe(self.mine)
        yield from skills.subscribe(self.first)
        yield from skills.subscribe(self.second)


class ThankAuthors(TaskTemplate, name="forum.thank_authors", horizon=19):
    intent = "Send the authors of the newest and of the top thread in the forum {forum} the message: {text}"
    forum: str = drawn(sampling.forum_of_two_authors)
    text: str = one_of(POSTS)

    def authors(self, data: ForumData) -> tuple[str, str]:
        return data.first_thread(self.forum, "newest").author, data.first_thread(self.forum, "top").author

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(*(messaged(author, self.text) for author in self.authors(data)))

    def milestones(self, data: ForumData) -> Milestones:
        newest, top = self.authors(data)
        return (
            ("open the author of the newest thread", skills.open_author.reached(newest)),
            ("send the message", skills.has_messaged(newest, self.text)),
            ("open the author of the top thread", skills.open_author.reached(top)),
            ("send the message", skills.has_messaged(top, self.text)),
        )

    def expert(self) -> Expert:
        for rank in ("newest", "top"):
            seen = yield from skills.open_ranked(self.forum, rank)
            yield from skills.open_author(skills.author(seen))
            yield from skills.send_message(self.text)


class LeaveAuthor(TaskTemplate, name="forum.leave_author", horizon=13, split="validation"):
    intent = "Downvote the {rank} thread in the forum {forum}, block its author, and subscribe to the forum {other}."
    forum: str = together(sampling.ranked_by_other)
    rank: str
    other: str = drawn(sampling.new_forum)

    def evaluation(self, data: ForumData) -> Evaluation:
        thread = data.first_thread(self.forum, self.rank)
        return pages(voted(thread, "Downvote"), blocked(thread.author), subscribed(self.other))

    def milestones(self, data: ForumData) -> Milestones:
        thread = data.first_thread(self.forum, self.rank)
        return (
            ("open the thread", at(thread.path)),
            ("downvote it", skills.has_voted(thread, "Downvote")),
            ("block the author", skills.block_author.reached(thread.author)),
            ("subscribe", skills.subscribe.reached(self.other)),
        )

    def expert(self) -> Expert:
        seen = yield from skills.open_ranked(self.forum, self.rank)
        yield from skills.vote("Downvote")
        yield from skills.block_author(skills.author(seen))
        yield from skills.subscribe(self.other)
