"""The forum's short tasks: one skill each, up to seven steps."""

from __future__ import annotations

from urllib.parse import urlencode

from sites.checks import Evaluation, Milestones, answer, both, has, pages, shows
from sites.experts import Expert
from sites.forum import sampling, skills
from sites.forum.checks import (
    PROFILE,
    at,
    ends_at,
    equals,
    filled_in,
    finding_forum,
    messaged,
    posted,
    replied,
    searched,
    subscribed,
    voted,
)
from sites.forum.data import ForumData
from sites.forum.words import POSTS, RANKS
from sites.skills import finish, search
from sites.task_template import TaskTemplate, drawn, one_of


class Search(TaskTemplate, name="forum.search", horizon=2):
    intent = "Search for {words}."
    words: str = drawn(sampling.search_words)

    def evaluation(self, data: ForumData) -> Evaluation:
        return ends_at(f"/search?{urlencode({'q': self.words})}")

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("start on the front page", at("/*")),
            ("see a search box", has("Search", role="searchbox")),
            ("search for something", at("/search*")),
            ("search for the words", searched(self.words)),
        )

    def expert(self) -> Expert:
        yield from search(self.words)


class CountComments(TaskTemplate, name="forum.count_comments", horizon=3):
    intent = "How many comments does the thread {title} have? Answer with a number."
    title: str = drawn(sampling.title)

    def evaluation(self, data: ForumData) -> Evaluation:
        return answer(str(len(data.comments_by_thread.get(data.titled(self.title).thread_id, ()))))

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("search for something", at("/search*")),
            ("search for the title", searched(self.title)),
            ("see the thread in a list", has(self.title)),
            ("open the thread", at(data.titled(self.title).path)),
        )

    def expert(self) -> Expert:
        seen = yield from skills.find_thread(self.title)
        yield from finish(skills.comment_count(seen))


class FirstAuthor(TaskTemplate, name="forum.first_author", horizon=5):
    intent = "Who wrote the {rank} thread in the forum {forum}? Answer with the user name."
    forum: str = drawn(sampling.forum)
    rank: str = one_of(tuple(RANKS))

    def evaluation(self, data: ForumData) -> Evaluation:
        return answer(data.first_thread(self.forum, self.rank).author)

    def milestones(self, data: ForumData) -> Milestones:
        return (*finding_forum(self.forum), ("sort the forum", skills.sort_forum.reached(self.forum, self.rank)))

    def expert(self) -> Expert:
        seen = yield from skills.sort_forum(self.forum, self.rank)
        author = skills.details(seen, skills.thread_links(seen)[0].name)[-3]
        yield from finish(author, r"[a-z]+\d*(?= \| \d+ points)")


class OpenSorted(TaskTemplate, name="forum.open_sorted", horizon=5):
    intent = "Open the forum {forum} and show the {rank} threads first."
    forum: str = drawn(sampling.forum)
    rank: str = one_of(tuple(RANKS))

    def evaluation(self, data: ForumData) -> Evaluation:
        return ends_at(f"/f/{self.forum}?sort={RANKS[self.rank]}")

    def milestones(self, data: ForumData) -> Milestones:
        return (*finding_forum(self.forum), ("sort the forum", skills.sort_forum.reached(self.forum, self.rank)))

    def expert(self) -> Expert:
        yield from skills.sort_forum(self.forum, self.rank)


class Subscribe(TaskTemplate, name="forum.subscribe", horizon=5):
    intent = "Subscribe to the forum {forum}."
    forum: str = drawn(sampling.new_forum)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(subscribed(self.forum))

    def milestones(self, data: ForumData) -> Milestones:
        return (*finding_forum(self.forum), ("subscribe", skills.subscribe.reached(self.forum)))

    def expert(self) -> Expert:
        yield from skills.subscribe(self.forum)


class ChangeBio(TaskTemplate, name="forum.change_bio", horizon=5):
    intent = "Change your bio to: {bio}"
    bio: str = drawn(sampling.bio)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(equals(PROFILE, "#bio", self.bio))

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("open the own profile", at(f"{PROFILE}*")),
            ("open the form", at("/profile")),
            ("write the bio", has("Bio", self.bio)),
            ("save it", skills.change_bio.reached(self.bio)),
        )

    def expert(self) -> Expert:
        yield from skills.change_bio(self.bio)


class Reply(TaskTemplate, name="forum.reply", horizon=5):
    intent = "Reply to the thread {title} with: {text}"
    title: str = drawn(sampling.title)
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(replied(data.titled(self.title), self.text))

    def milestones(self, data: ForumData) -> Milestones:
        thread = data.titled(self.title)
        return (
            ("search for the title", searched(self.title)),
            ("open the thread", at(thread.path)),
            *skills.replying(thread, self.text),
        )

    def expert(self) -> Expert:
        yield from skills.find_thread(self.title)
        yield from skills.reply(self.text)


class EditThread(TaskTemplate, name="forum.edit_thread", horizon=6):
    intent = "Change the text of your thread {title} to: {text}"
    title: str = drawn(sampling.own_title)
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(equals(data.titled(self.title).path, "#body", self.text))

    def milestones(self, data: ForumData) -> Milestones:
        path = data.titled(self.title).path
        return (
            ("open the own profile", at(f"{PROFILE}*")),
            ("open the thread", at(path)),
            ("write the text", both(at(f"{path}/edit"), has("Text", self.text))),
            ("save it", both(at(path), skills.edit_text.reached(self.text))),
        )

    def expert(self) -> Expert:
        yield from skills.open_own(self.title)
        yield from skills.edit_text(self.text)


class Message(TaskTemplate, name="forum.message", horizon=6):
    intent = "Send the user {user} the message: {text}"
    user: str = drawn(sampling.user)
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(messaged(self.user, self.text))

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("open the user's profile", at(f"/user/{self.user}")),
            ("open the form", at(f"/user/{self.user}/message")),
            *skills.messaging(self.user, self.text),
        )

    def expert(self) -> Expert:
        yield from skills.open_user(self.user)
        yield from skills.send_message(self.text)


class Submit(TaskTemplate, name="forum.submit", horizon=6):
    intent = "Submit a thread to the forum {forum} with the title {title} and the text: {text}"
    forum: str = drawn(sampling.forum)
    title: str = drawn(sampling.new_title)
    text: str = one_of(POSTS)

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(*posted(self.forum, self.title, self.text))

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("open the form", at("/submit*")),
            ("choose the forum", both(at("/submit*"), has("Forum", self.forum))),
            ("write title and text", filled_in(self.forum, self.title, self.text)),
            ("post it", both(at(f"/f/{self.forum}/*"), shows("was posted", self.title, self.text))),
        )

    def expert(self) -> Expert:
        yield from skills.submit_thread(self.forum, self.title, self.text)


class VoteFirst(TaskTemplate, name="forum.vote_first", horizon=7):
    intent = "{vote} the {rank} thread in the forum {forum}."
    vote: str = one_of(("Upvote", "Downvote"))
    forum: str = drawn(sampling.forum)
    rank: str = one_of(tuple(RANKS))

    def evaluation(self, data: ForumData) -> Evaluation:
        return pages(voted(data.first_thread(self.forum, self.rank), self.vote))

    def milestones(self, data: ForumData) -> Milestones:
        return (
            ("open the forum", at(f"/f/{self.forum}*")),
            ("sort the forum", skills.sort_forum.reached(self.forum, self.rank)),
            ("open the thread", at(data.first_thread(self.forum, self.rank).path)),
            ("vote", skills.has_voted(data.first_thread(self.forum, self.rank), self.vote)),
        )

    def expert(self) -> Expert:
        yield from skills.open_ranked(self.forum, self.rank)
        yield from skills.vote(self.vote)
