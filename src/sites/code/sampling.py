"""What the code host's tasks may ask for: which project, issue, user, day and text an instruction is about.

Owns the draws of parameters. Invariants: every drawn task can be solved as its expert solves it (an item that must
be found is on the first page of its results) and is unambiguous.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import TypeVar

from sites.code import words
from sites.code.data import ME, ROLES, TODAY, CodeData, Issue, MergeRequest
from sites.code.issue_pages import ISSUES_PER_PAGE
from sites.code.skills import subject
from sites.task_template import Parameters

Item = TypeVar("Item", Issue, MergeRequest)


def project(data: CodeData, rng: random.Random) -> str:
    """Draw a project."""
    return rng.choice(sorted(data.projects))


def managed(data: CodeData, rng: random.Random) -> str:
    """Draw a project whose settings and members the user may change."""
    return rng.choice([path for path, p in sorted(data.projects.items()) if p.members[ME] in ("Maintainer", "Owner")])


def namesakes(data: CodeData, project: str) -> list[str]:
    """Return the other projects that a search for the name of a project, without its group, finds."""
    name = project.split("/")[1]
    return [path for path, other in data.projects.items() if name in other.name and path != project]


def user(data: CodeData, rng: random.Random) -> str:
    """Draw another user."""
    return rng.choice(sorted(set(data.users) - {ME}))


def two_users(data: CodeData, rng: random.Random) -> Parameters:
    """Draw two different users."""
    first, second = rng.sample(sorted(set(data.users) - {ME}), 2)
    return {"first": first, "second": second}


def colleague(data: CodeData, rng: random.Random, project: str) -> str:
    """Draw a member of a project."""
    return rng.choice(sorted(data.projects[project].members))


def lesser_member(data: CodeData, rng: random.Random, project: str) -> str:
    """Draw another member of a project who is no owner."""
    names = [name for name, role in data.projects[project].members.items() if name != ME and role != "Owner"]
    return rng.choice(sorted(names))


def stranger(data: CodeData, rng: random.Random, project: str) -> str:
    """Draw somebody who is no member of a project."""
    return rng.choice(sorted(set(data.users) - set(data.projects[project].members)))


def member_or_not(data: CodeData, rng: random.Random, project: str) -> str:
    """Draw a user who is a member of a project more often than not."""
    members = sorted(set(data.projects[project].members) - {ME})
    return rng.choice(members) if rng.random() < 0.6 else user(data, rng)


def role(data: CodeData, rng: random.Random) -> str:
    """Draw a role to give somebody."""
    return rng.choice(ROLES[:-1])


def label(data: CodeData, rng: random.Random, project: str) -> str:
    """Draw a label of a project."""
    return rng.choice(sorted(data.projects[project].labels))


def milestone(data: CodeData, rng: random.Random, project: str) -> str:
    """Draw a milestone of a project."""
    return rng.choice(data.projects[project].milestones).title


def new_title(data: CodeData, rng: random.Random) -> str:
    """Draw a title for a new issue or merge request; none in the base data has it."""
    return f"Plan {rng.choice(words.OBJECTS)}"


def new_text(data: CodeData, rng: random.Random) -> str:
    """Draw a text for a file; none has it."""
    return f"{rng.choice(words.FILE_TEXTS)}, {rng.choice(words.NEW_PROJECTS)}"


def issue(data: CodeData, rng: random.Random, project: str) -> str:
    """Draw an open issue of a project."""
    return rng.choice(_findable(data.projects[project].issues)).title


def two_issues(data: CodeData, rng: random.Random, project: str) -> Parameters:
    """Draw two open issues of a project."""
    first, second = rng.sample(_findable(data.projects[project].issues), 2)
    return {"first": first.title, "second": second.title}


def request(data: CodeData, rng: random.Random) -> Parameters:
    """Draw a project and one of its open merge requests that is no draft."""
    while True:
        path = project(data, rng)
        ready = [item for item in _findable(data.projects[path].requests) if not item.draft]
        if ready:
            return {"project": path, "title": rng.choice(ready).title}


def day(earliest: int, latest: int) -> Callable[[CodeData, random.Random], str]:
    """Draw a day so many days after today."""
    return lambda data, rng: str(TODAY + timedelta(days=rng.randint(earliest, latest)))


def period(data: CodeData, rng: random.Random) -> Parameters:
    """Draw the days between which a milestone is worked on."""
    start = day(5, 60)(data, rng)
    return {"start": start, "end": str(date.fromisoformat(start) + timedelta(days=rng.randint(7, 60)))}


def commits(data: CodeData, rng: random.Random, project: str) -> Parameters:
    """Draw an author and two days between which the author made commits to a project."""
    commit = rng.choice(data.projects[project].commits)
    since, until = commit.day - timedelta(days=rng.randrange(3, 25)), commit.day + timedelta(days=rng.randrange(3, 25))
    return {"user": commit.author, "since": str(since), "until": str(until)}


def todo_author(data: CodeData, rng: random.Random) -> str:
    """Draw a user from whom there are to-do items."""
    return rng.choice(sorted({todo.author for todo in data.todos}))


def search_words(data: CodeData, rng: random.Random) -> str:
    """Draw a project, its name without the group, or a user."""
    path, name = project(data, rng), user(data, rng)
    return rng.choice((path.split("/")[1], path, name))


def alike(items: Mapping[int, Item], title: str) -> list[Item]:
    """Return the other open items about the same thing."""
    return [i for i in items.values() if i.state == "open" and i.title != title and subject(i.title) == subject(title)]


def _findable(items: Mapping[int, Item]) -> list[Item]:
    """Return the open items that a search for their subject shows on its first page."""
    return [i for i in items.values() if i.state == "open" and len(alike(items, i.title)) < ISSUES_PER_PAGE]
