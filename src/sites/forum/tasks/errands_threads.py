"""Errands about threads of the forum: votes, replies and posts in several places, thirteen to seventeen steps."""

from __future__ import annotations

import re

from sites.checks import Evaluation, Milestones, both, pages
from sites.experts import Expert
from sites.forum import sampling, skills
from sites.forum.checks import PROFILE, at, crossposted, includes, messaged, posted, replied, subscribed, voted
from sites.forum.data import ForumData, Thread
from sites.forum.words import POSTS, RANKS
from sites.skills import click, noting
from sites.task_template import TaskTemplate, drawn, one_of, together


class AnswerBoth(TaskTemplate, name="forum.answer_both", horizon=15):
    intent = "Upvote the thread {title} in the forum {first} and in the forum {second}, and reply to both: {text}"
    title: str = together(sampling.shared_by_two)
    first: str
    second: str
    text: str = one_of(POSTS)

    def threads(self, data: ForumData) -> tuple[Thread, Thread]:
        return data.shared(self.title, self.first), data.shared(self.title, self.second)

    def evaluation(self, data: ForumData) -> Evaluation:
        first, second = self.threads(data)
        return pages(voted(first), voted(second), replied(first, self.text), replied(second, self.text))

    def milestones(self, data: ForumData) -> Milestones:
        first, second = self.threads(data)
        return (
            ("upvote the first thread", skills.has_voted(first)),
            ("post the comment", skills.has_replied(first, self.text)),
            ("upvote the second thread", skills.has_voted(second)),
            ("post the comment", skills.has_replied(second, self.text)),
        )

    def expert(self) -> Expert:
        for forum in (self.first, self.second):
            yield from skills.find_thread_in(self.title, forum)
            yield from skills.vote()
            yield from skills.reply(self.text)


class JoinIn(TaskTemplate, name="forum.join_in", horizon=14):
    intent = (
        "Subscribe to the forum {forum}, upvote its {rank} thread and reply to it: {text} Then submit a thread "
        "there with the title {title} and the text: {body}"
    )
    forum: str = together(sampling.ranked_in_one_order)
    rank: str
    text: str = one_of(POSTS)
    title: str = drawn(sampling.new_title)
    body: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        thread = data.first_thread(self.forum, self.rank)
        done = voted(thread), replied(thread, self.text)
        return pages(subscribed(self.forum), *done, *posted(self.forum, self.title, self.body))

    def milestones(self, data: ForumData) -> Milestones:
        thread = data.first_thread(self.forum, self.rank)
        return (
            ("subscribe", skills.subscribe.reached(self.forum)),
            ("upvote the thread", skills.has_voted(thread)),
            ("post the comment", skills.has_replied(thread, self.text)),
            ("post the thread", skills.submit_thread.reached(self.forum, self.title, self.body)),
        )

    def expert(self) -> Expert:
        yield from skills.subscribe(self.forum)
        seen = yield from skills.show_first(self.rank)
        yield from skills.open_first(seen)
        yield from skills.vote()
        yield from skills.reply(self.text)
        yield from click("Submit", "link")
        yield from skills.post_thread(self.title, self.body)


class CrosspostAndTell(TaskTemplate, name="forum.crosspost_and_tell", horizon=15):
    intent = (
        "Crosspost the {rank} thread of the forum {first} to the forum {second}, pin what you posted, and send "
        "the user {user} the message: {text}"
    )
    first: str = together(sampling.two_forums)
    second: str
    rank: str = one_of(tuple(RANKS))
    user: str = drawn(sampling.user)
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        title = data.first_thread(self.first, self.rank).title
        pinned = includes(PROFILE, "#pinned", title)
        return pages(*crossposted(self.second, title, self.first), pinned, messaged(self.user, self.text))

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("open the thread", at(data.first_thread(self.first, self.rank).path)),
            ("post it", skills.crosspost.reached(self.first, self.rank, self.second)),
            ("pin it", both(at(f"/f/{self.second}/*"), skills.pin.reached())),
            ("send the message", skills.has_messaged(self.user, self.text)),
        )

    def expert(self) -> Expert:
        yield from skills.crosspost(self.first, self.rank, self.second)
        yield from skills.pin()
        yield from skills.open_user(self.user)
        yield from skills.send_message(self.text)


class ReplyToBetter(TaskTemplate, name="forum.reply_to_better", split="test"):
    intent = (
        "Of the top threads in the forums {first} and {second}, upvote the one with more points and reply to it: {text}"
    )
    first: str = together(sampling.two_forums)
    second: str
    text: str = one_of(POSTS)

    def better(self, data: ForumData) -> Thread:
        return max((data.first_thread(forum, "top") for forum in (self.first, self.second)), key=lambda t: t.points)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(voted(self.better(data)), replied(self.better(data), self.text))

    def milestones(self, data: ForumData) -> Milestones:
        thread = self.better(data)
        return (
            ("see both forums", skills.sort_forum.reached(self.second, "top")),
            ("open the thread with more points", at(thread.path)),
            ("upvote it", skills.has_voted(thread)),
            ("post the comment", skills.has_replied(thread, self.text)),
        )

    def expert(self) -> Expert:
        points, note = dict[str, int](), None
        for forum in (self.first, self.second):
            # To look at another forum or order by mistake need not change what follows.
            seen = yield from noting(note, skills.sort_forum(forum, "top", careful=True))
            told = re.search(r"(\d+) points", " ".join(skills.details(seen, skills.thread_links(seen)[0].name)))
            if told is None:
                raise LookupError(f"expected the points of a thread, found {seen.page_text!r}")
            points[forum] = int(told[1])
            note = f"{forum} {told[0]}"
        if points[self.first] > points[self.second]:
            seen = yield from skills.sort_forum(self.first, "top", careful=True)
        yield from skills.open_first(seen)
        yield from skills.vote()
        yield from skills.reply(self.text)

    def steps(self, data: ForumData) -> int:
        return 13 if self.better(data).forum == self.second else 17
