"""The forum's long tasks: several skills in a row, eight to fifteen steps.

Each of them is easily left unfinished or done to the wrong thread, user or forum.
"""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, both, has, pages
from sites.experts import Expert
from sites.forum import sampling, skills
from sites.forum.checks import at, crossposted, filled_in, messaged, posted, replied, searched, subscribed, voted
from sites.forum.data import ForumData, Thread
from sites.forum.words import POSTS, RANKS
from sites.skills import click
from sites.task_template import TaskTemplate, drawn, one_of, together


class BestOfUser(TaskTemplate, name="forum.best_of_user", horizon=8):
    intent = "Find the top thread of the user {user}, upvote it and reply: {text}"
    user: str = drawn(sampling.active_user)
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        thread = data.best_thread(self.user)
        return pages(voted(thread), replied(thread, self.text))

    def milestones(self, data: ForumData) -> Milestones:
        thread = data.best_thread(self.user)
        return (
            ("open the user's profile", skills.open_user.reached(self.user)),
            ("open the thread", at(thread.path)),
            ("upvote it", skills.has_voted(thread)),
            ("post the comment", skills.has_replied(thread, self.text)),
        )

    def expert(self) -> Expert:
        yield from skills.open_user(self.user)
        seen = yield from click("Top", "link", "New|Top")
        yield from skills.open_first(seen)
        yield from skills.vote()
        yield from skills.reply(self.text)


class VoteAndReply(TaskTemplate, name="forum.vote_and_reply", horizon=8):
    intent = "In the forum {forum}, find the thread {title}, upvote it and reply: {text}"
    title: str = together(sampling.shared_title)
    forum: str
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        thread = data.shared(self.title, self.forum)
        return pages(voted(thread), replied(thread, self.text))

    def milestones(self, data: ForumData) -> Milestones:
        thread = data.shared(self.title, self.forum)
        return (
            ("search for the title", searched(self.title)),
            ("open the thread", at(thread.path)),
            ("upvote it", skills.has_voted(thread)),
            ("post the comment", skills.has_replied(thread, self.text)),
        )

    def expert(self) -> Expert:
        yield from skills.find_thread_in(self.title, self.forum)
        yield from skills.vote()
        yield from skills.reply(self.text)


class SubscribeAndSubmit(TaskTemplate, name="forum.subscribe_and_submit", horizon=9):
    intent = "Subscribe to the forum {forum} and submit a thread there with the title {title} and the text: {text}"
    forum: str = drawn(sampling.new_forum)
    title: str = drawn(sampling.new_title)
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(subscribed(self.forum), *posted(self.forum, self.title, self.text))

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("open the forum", at(f"/f/{self.forum}*")),
            ("subscribe", skills.subscribe.reached(self.forum)),
            ("fill in the form", filled_in(self.forum, self.title, self.text)),
            ("post the thread", skills.submit_thread.reached(self.forum, self.title, self.text)),
        )

    def expert(self) -> Expert:
        yield from skills.subscribe(self.forum)
        yield from click("Submit", "link")
        yield from skills.post_thread(self.title, self.text)


class Crosspost(TaskTemplate, name="forum.crosspost", horizon=9):
    intent = "Crosspost the {rank} thread of the forum {first} to the forum {second}."
    first: str = together(sampling.two_forums)
    second: str
    rank: str = one_of(tuple(RANKS))

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(*crossposted(self.second, data.first_thread(self.first, self.rank).title, self.first))

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("sort the forum", skills.sort_forum.reached(self.first, self.rank)),
            ("open the thread", at(data.first_thread(self.first, self.rank).path)),
            ("choose the other forum", both(at("/submit?crosspost=*"), has("Forum", self.second))),
            ("post it", skills.crosspost.reached(self.first, self.rank, self.second)),
        )

    def expert(self) -> Expert:
        yield from skills.crosspost(self.first, self.rank, self.second)


class MessageAuthor(TaskTemplate, name="forum.message_author", horizon=10):
    intent = "Send the author of the {rank} thread in the forum {forum} the message: {text}"
    forum: str = together(sampling.ranked_by_other)
    rank: str
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(messaged(data.first_thread(self.forum, self.rank).author, self.text))

    def milestones(self, data: ForumData) -> Milestones:
        thread = data.first_thread(self.forum, self.rank)
        return (
            ("sort the forum", skills.sort_forum.reached(self.forum, self.rank)),
            ("open the thread", at(thread.path)),
            ("open the author's profile", skills.open_author.reached(thread.author)),
            ("send the message", skills.has_messaged(thread.author, self.text)),
        )

    def expert(self) -> Expert:
        seen = yield from skills.open_ranked(self.forum, self.rank)
        yield from skills.open_author(skills.author(seen))
        yield from skills.send_message(self.text)


class MessageTwo(TaskTemplate, name="forum.message_two", horizon=11):
    intent = "Send the users {first} and {second} the same message: {text}"
    first: str = together(sampling.two_users)
    second: str
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(messaged(self.first, self.text), messaged(self.second, self.text))

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("open the first user's form", at(f"/user/{self.first}/message")),
            ("send the message", skills.has_messaged(self.first, self.text)),
            ("open the second user's form", at(f"/user/{self.second}/message")),
            ("send the message", skills.has_messaged(self.second, self.text)),
        )

    def expert(self) -> Expert:
        for user in (self.first, self.second):
            yield from skills.open_user(user)
            yield from skills.send_message(self.text)


class VoteTwoAndReply(TaskTemplate, name="forum.vote_two_and_reply", horizon=15):
    intent = "Upvote the {rank} thread in the forum {first} and in the forum {second}. Reply to the second: {text}"
    first: str = together(sampling.two_forums)
    second: str
    rank: str = one_of(tuple(RANKS))
    text: str = one_of(POSTS)

    def threads(self, data: ForumData) -> tuple[Thread, Thread]:
        return data.first_thread(self.first, self.rank), data.first_thread(self.second, self.rank)

    def evaluation(self, data: ForumData) -> Evaluation:
        first, second = self.threads(data)
        return pages(voted(first), voted(second), replied(second, self.text))

    def milestones(self, data: ForumData) -> Milestones:
        first, second = self.threads(data)
        return (
            ("open the first thread", at(first.path)),
            ("upvote it", skills.has_voted(first)),
            ("upvote the second thread", skills.has_voted(second)),
            ("post the comment", skills.has_replied(second, self.text)),
        )

    def expert(self) -> Expert:
        for forum in (self.first, self.second):
            yield from skills.open_ranked(forum, self.rank)
            yield from skills.vote()
        yield from skills.reply(self.text)
