"""The code host's records: users, projects and what belongs to a project.

Owns the record types and the fixed day. Invariants: every record is immutable, so that all sessions
share the base data and a change is a new record (``sites.code.state``); issue and milestone titles
are unique within a project; ids and dates are functions of the seed alone (``sites.code.generation``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

ME = "ines"
"""The user whom a logged-in session belongs to."""

TODAY = date(2024, 6, 3)
"""The code host's clock stands still on this day."""

ROLES = ("Guest", "Reporter", "Developer", "Maintainer", "Owner")
"""What members may be, from least to most rights."""

VISIBILITIES = ("Private", "Internal", "Public")
MERGE_METHODS = ("Merge commit", "Fast-forward")

Files = Mapping[str, str]
"""Texts of files by path."""


@dataclass(frozen=True, slots=True)
class User:
    """One user; an empty field is one that the profile does not show."""

    name: str
    email: str = ""
    location: str = ""
    company: str = ""
    status: str = ""
    clear_after: str = ""


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment on an issue or a merge request."""

    author: str
    body: str


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit; ``branch`` is empty for those that all branches share."""

    sha: str
    title: str
    author: str
    day: date
    branch: str = ""


@dataclass(frozen=True, slots=True)
class Milestone:
    """One milestone; without an end nobody knows when it is due."""

    number: int
    title: str
    start: date | None = None
    end: date | None = None
    note: str = ""
    state: str = "active"


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue; ``assignee`` and ``milestone`` are empty where there is none."""

    number: int
    title: str
    body: str
    author: str
    day: date
    labels: tuple[str, ...] = ()
    assignee: str = ""
    milestone: str = ""
    due: date | None = None
    state: str = "open"
    comments: tuple[Comment, ...] = ()


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """One merge request from branch ``source`` into branch ``target``; ``state`` is open, merged or closed."""

    number: int
    title: str
    body: str
    author: str
    source: str
    target: str
    reviewer: str = ""
    state: str = "open"
    draft: bool = False
    approved_by: tuple[str, ...] = ()
    comments: tuple[Comment, ...] = ()


@dataclass(frozen=True, slots=True)
class Todo:
    """Something that waits for the user: ``kind`` is assigned, mentioned or review."""

    number: int
    kind: str
    author: str
    project: str
    title: str
    path: str


@dataclass(frozen=True)
class Project:
    """One project with everything in it; ``commits`` are newest first, ``members`` maps users to roles."""

    group: str
    name: str
    about: str
    visibility: str
    default_branch: str
    stars: int
    updated: date
    branches: Mapping[str, Files]
    commits: tuple[Commit, ...]
    members: Mapping[str, str]
    labels: Mapping[str, str]
    milestones: tuple[Milestone, ...] = ()
    issues: Mapping[int, Issue] = field(default_factory=dict)
    requests: Mapping[int, MergeRequest] = field(default_factory=dict)
    merge_method: str = MERGE_METHODS[0]
    forked_from: str = ""

    @property
    def path(self) -> str:
        """The project's full name, which is also its path on the site."""
        return f"{self.group}/{self.name}"

    def issue(self, title: str) -> Issue:
        """Return the issue of this title."""
        return next(issue for issue in self.issues.values() if issue.title == title)

    def request(self, title: str) -> MergeRequest:
        """Return the merge request of this title."""
        return next(request for request in self.requests.values() if request.title == title)

    def milestone(self, title: str) -> Milestone:
        """Return the milestone of this title."""
        return next(milestone for milestone in self.milestones if milestone.title == title)

    def open_issues(self, label: str = "", assignee: str = "") -> list[Issue]:
        """Return the open issues of a label or an assignee, or all of them, latest first."""
        found = [i for i in self.issues.values() if i.state == "open" and assignee in ("", i.assignee)]
        return sorted((i for i in found if not label or label in i.labels), key=lambda i: -i.number)


@dataclass(frozen=True, eq=False)
class CodeData:
    """All base data; nobody may change it. ``groups`` are those in which the user may create projects."""

    users: Mapping[str, User]
    projects: Mapping[str, Project]
    todos: tuple[Todo, ...]
    groups: tuple[str, ...]
