"""The forum's atoms: subscriptions, threads, votes, users and the own profile."""

from __future__ import annotations

from collections.abc import Iterator

from sites.chains.atom import Atom
from sites.checks import Check, Target, both, has, shows
from sites.experts import Actions
from sites.forum import sampling, skills
from sites.forum.checks import PROFILE, at, blocked, equals, includes, messaged, posted, replied, subscribed, voted
from sites.forum.data import ME, MY_SUBSCRIPTIONS, ForumData
from sites.forum.words import POSTS
from sites.skills import click
from sites.task_template import drawn, one_of


class _OfForum(Atom):
    """About one forum."""

    forum: str

    def path(self, data: ForumData) -> str:
        return f"/f/{self.forum}/subscription"


class Subscribe(_OfForum, name="forum.subscribe", length=4):
    wordings = (
        "Subscribe to the forum {forum}",
        "Join the forum {forum} by subscribing to it",
        "Find the forum {forum} and subscribe",
        "You want news of the forum {forum}: subscribe to it",
        "Become a subscriber of the forum {forum}",
        "Let {forum} be one of the forums that you subscribe to",
    )
    forum: str = drawn(sampling.new_forum)

    def expert(self) -> Actions:
        return (yield from skills.subscribe(self.forum))

    def done(self, data: ForumData) -> Check:
        return skills.subscribe.reached(self.forum)

    def wanted(self, data: ForumData) -> tuple[Target, ...]:
        return (subscribed(self.forum),)


class Unsubscribe(_OfForum, name="forum.unsubscribe", length=4):
    wordings = (
        "Unsubscribe from the forum {forum}",
        "Leave the forum {forum} by unsubscribing",
        "Find the forum {forum} and unsubscribe",
        "You want no more news of the forum {forum}: unsubscribe from it",
        "End your subscription of the forum {forum}",
        "Let {forum} be no forum that you are subscribed to",
    )
    forum: str = one_of(MY_SUBSCRIPTIONS)

    def expert(self) -> Actions:
        return (yield from skills.unsubscribe(self.forum))

    def done(self, data: ForumData) -> Check:
        return skills.unsubscribe.reached(self.forum)

    def wanted(self, data: ForumData) -> tuple[Target, ...]:
        return (equals(f"/f/{self.forum}", "#subscription", "Subscribe"),)


class ChangeBio(Atom, name="forum.change_bio", length=4):
    wordings = (
        'Change your bio to "{bio}"',
        'Write "{bio}" as your bio',
        'In your profile, set the bio to "{bio}"',
        'Your bio should say "{bio}": change it',
        'Let "{bio}" be the bio of your profile',
        'Edit the profile so that its bio reads "{bio}"',
    )
    bio: str = drawn(sampling.bio)

    def expert(self) -> Actions:
        return (yield from skills.change_bio(self.bio))

    def path(self, data: ForumData) -> str:
        return "/profile"

    def done(self, data: ForumData) -> Check:
        return skills.change_bio.reached(self.bio)

    def wanted(self, data: ForumData) -> tuple[Target, ...]:
        return (equals(PROFILE, "#bio", self.bio),)


class _OfThread(Atom):
    """About one thread, which only its title finds."""

    title: str = drawn(sampling.title)

    def things(self, data: ForumData) -> Iterator[str]:
        thread = data.titled(self.title)
        yield from (thread.path, thread.author)


class Reply(_OfThread, name="forum.reply", length=4):
    wordings = (
        'Reply to the thread {title} with "{text}"',
        'Answer the thread {title}: "{text}"',
        'With "{text}", reply to the thread {title}',
        'Write the comment "{text}" in the thread {title}',
        'Under the thread {title}, post "{text}"',
        'Let "{text}" be your answer to the thread {title}',
    )
    text: str = one_of(POSTS)

    def expert(self) -> Actions:
        yield from skills.find_thread(self.title)
        return (yield from skills.reply(self.text))

    def path(self, data: ForumData) -> str:
        return f"{data.titled(self.title).path}/reply"

    def done(self, data: ForumData) -> Check:
        return skills.has_replied(data.titled(self.title), self.text)

    def wanted(self, data: ForumData) -> tuple[Target, ...]:
        return (replied(data.titled(self.title), self.text),)


class _Vote(_OfThread):
    """A vote on a thread."""

    choice: str = ""

    def expert(self) -> Actions:
        yield from skills.find_thread(self.title)
        return (yield from skills.vote(self.choice))

    def path(self, data: ForumData) -> str:
        return f"{data.titled(self.title).path}/vote"

    def done(self, data: ForumData) -> Check:
        return skills.has_voted(data.titled(self.title), self.choice)

    def wanted(self, data: ForumData) -> tuple[Target, ...]:
        return (voted(data.titled(self.title), self.choice),)


class Upvote(_Vote, name="forum.upvote", length=3):
    wordings = (
        "Upvote the thread {title}",
        "Vote for the thread {title}",
        "Find the thread {title} and upvote it",
        "You like the thread {title}: upvote it",
        "Let your upvote go to the thread {title}",
        "To the thread {title}, give an upvote",
    )
    choice: str = "Upvote"


class Downvote(_Vote, name="forum.downvote", length=3):
    wordings = (
        "Downvote the thread {title}",
        "Vote against the thread {title}",
        "Find the thread {title} and downvote it",
        "You do not like the thread {title}: downvote it",
        "Let your downvote go to the thread {title}",
        "To the thread {title}, give a downvote",
    )
    choice: str = "Downvote"


class _OfUser(Atom):
    """About another user."""

    user: str = drawn(sampling.user)

    def things(self, data: ForumData) -> Iterator[str]:
        yield self.user


class Message(_OfUser, name="forum.message", length=5):
    wordings = (
        'Send the user {user} the message "{text}"',
        'Write "{text}" to the user {user}',
        'To the user {user}, send the message "{text}"',
        'Message {user}: "{text}"',
        'Let the user {user} know "{text}" by a message',
        'Your message to {user} is "{text}": send it',
    )
    text: str = one_of(POSTS)

    def expert(self) -> Actions:
        yield from skills.open_user(self.user)
        return (yield from skills.send_message(self.text))

    def path(self, data: ForumData) -> str:
        return f"/user/{self.user}/message"

    def done(self, data: ForumData) -> Check:
        return skills.has_messaged(self.user, self.text)

    def wanted(self, data: ForumData) -> tuple[Target, ...]:
        return (messaged(self.user, self.text),)


class Block(_OfUser, name="forum.block", length=3):
    wordings = (
        "Block the user {user}",
        "Find the user {user} and block them",
        "You want to read nothing by {user}: block the user",
        "On the profile of {user}, block the user",
        "Let the user {user} be blocked",
        "See to it that the user {user} is blocked",
    )

    def expert(self) -> Actions:
        yield from skills.open_user(self.user)
        return (yield from click("Block", "button"))

    def path(self, data: ForumData) -> str:
        return f"/user/{self.user}/block"

    def done(self, data: ForumData) -> Check:
        return both(at(f"/user/{self.user}*"), has("Unblock"))

    def wanted(self, data: ForumData) -> tuple[Target, ...]:
        return (blocked(self.user),)


class Submit(Atom, name="forum.submit", length=5):
    wordings = (
        'Submit a thread to the forum {forum} with the title "{title}" and the text "{text}"',
        'In the forum {forum}, post a thread called "{title}" with the text "{text}"',
        'Post a thread with the text "{text}" and the title "{title}" to the forum {forum}',
        'Start the thread "{title}" in the forum {forum}: "{text}"',
        'With the title "{title}" and the text "{text}", submit a thread to {forum}',
        'Let the forum {forum} have a new thread "{title}" that says "{text}"',
    )
    forum: str = drawn(sampling.forum)
    title: str = drawn(sampling.new_title)
    text: str = one_of(POSTS)

    def expert(self) -> Actions:
        return (yield from skills.submit_thread(self.forum, self.title, self.text))

    def path(self, data: ForumData) -> str:
        return "/submit"

    def things(self, data: ForumData) -> Iterator[str]:
        # The profile lists the newest thread first, and what it lists last is found no more.
        yield from (thread.path for thread in data.threads_by_author[ME])

    def done(self, data: ForumData) -> Check:
        return both(at(f"/f/{self.forum}/*"), shows("was posted", self.title, self.text))

    def wanted(self, data: ForumData) -> tuple[Target, ...]:
        return posted(self.forum, self.title, self.text)


class _OfOwnThread(Atom):
    """About one of the user's own threads, which the profile lists."""

    title: str = drawn(sampling.own_title)

    def things(self, data: ForumData) -> Iterator[str]:
        yield data.titled(self.title).path


class Pin(_OfOwnThread, name="forum.pin", length=3):
    wordings = (
        "Pin your thread {title}",
        "Of your threads, pin {title}",
        "Find your thread {title} and pin it",
        "Your thread {title} should be pinned: pin it",
        "Let your thread {title} be the one that is pinned",
        "On your profile, have the thread {title} pinned",
    )

    def expert(self) -> Actions:
        yield from skills.open_own(self.title)
        return (yield from skills.pin())

    def path(self, data: ForumData) -> str:
        return f"{data.titled(self.title).path}/pin"

    def done(self, data: ForumData) -> Check:
        return both(at(data.titled(self.title).path), skills.pin.reached())

    def wanted(self, data: ForumData) -> tuple[Target, ...]:
        return (includes(PROFILE, "#pinned", f"Pinned: {self.title}"),)


class EditThread(_OfOwnThread, name="forum.edit_thread", length=5):
    wordings = (
        'Change the text of your thread {title} to "{text}"',
        'Your thread {title} should say "{text}": change it',
        'Write "{text}" as the text of your thread {title}',
        'Edit your thread {title} so that its text is "{text}"',
        'Let the text of your thread {title} be "{text}"',
        'With "{text}", replace the text of your thread {title}',
    )
    text: str = one_of(POSTS)

    def expert(self) -> Actions:
        yield from skills.open_own(self.title)
        return (yield from skills.edit_text(self.text))

    def path(self, data: ForumData) -> str:
        return f"{data.titled(self.title).path}/edit"

    def done(self, data: ForumData) -> Check:
        return both(at(data.titled(self.title).path), skills.edit_text.reached(self.text))

    def wanted(self, data: ForumData) -> tuple[Target, ...]:
        return (equals(data.titled(self.title).path, "#body", self.text),)
