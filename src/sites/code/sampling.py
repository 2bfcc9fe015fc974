"""Parameters of the code host's tasks: which project, issue, user, day and text an instruction is about.

Owns the draws. Invariants: every drawn task can be solved as its expert solves it (an item that must be
found is on the first page of its results) and is unambiguous; where a careless choice could lead to the same
answer, the draw is repeated; parameters are JSON values and hold no answers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeVar

from sites.code import words
from sites.code.data import ME, ROLES, TODAY, VISIBILITIES, CodeData, Issue, MergeRequest, Milestone, Project
from sites.code.experts import subject
from sites.code.issue_pages import ISSUES_PER_PAGE
from sites.old_form import Parameters

Draw = Callable[[CodeData, random.Random], Any]
Sampler = Callable[[CodeData, random.Random], Parameters]
Item = TypeVar("Item", Issue, MergeRequest)


def draw(**parts: Draw) -> Sampler:
    """Return a sampler that fills each parameter by its own draw."""

    def sample(data: CodeData, rng: random.Random) -> Parameters:
        return {name: part(data, rng) for name, part in parts.items()}

    return sample


def joined(*groups: Sampler) -> Sampler:
    """Return a sampler that merges the parameters of several."""

    def sample(data: CodeData, rng: random.Random) -> Parameters:
        return {name: value for group in groups for name, value in group(data, rng).items()}

    return sample


def until(sampler: Sampler, accepts: Callable[[Parameters, CodeData], bool]) -> Sampler:
    """Return a sampler that draws again until the parameters are accepted."""

    def sample(data: CodeData, rng: random.Random) -> Parameters:
        while True:
            parameters = sampler(data, rng)
            if accepts(parameters, data):
                return parameters

    return sample


def one_of(values: Iterable[str]) -> Draw:
    """Draw one of these values."""
    choices = tuple(values)
    return lambda data, rng: rng.choice(choices)


def day(earliest: int, latest: int) -> Draw:
    """Draw a day so many days after today."""
    return lambda data, rng: str(TODAY + timedelta(days=rng.randint(earliest, latest)))


def project(data: CodeData, rng: random.Random) -> str:
    """Draw a project."""
    return rng.choice(sorted(data.projects))


def managed(data: CodeData, rng: random.Random) -> str:
    """Draw a project whose settings and members the user may change."""
    return rng.choice([path for path, p in sorted(data.projects.items()) if p.members[ME] in ("Maintainer", "Owner")])


def user(data: CodeData, rng: random.Random) -> str:
    """Draw another user."""
    return rng.choice(sorted(set(data.users) - {ME}))


def role(data: CodeData, rng: random.Random) -> str:
    """Draw a role to give somebody."""
    return rng.choice(ROLES[:-1])


def visibility(data: CodeData, rng: random.Random) -> str:
    """Draw a visibility."""
    return rng.choice(VISIBILITIES)


def new_title(data: CodeData, rng: random.Random) -> str:
    """Draw a title for a new issue or merge request; none in the base data has it."""
    return f"Plan {rng.choice(words.OBJECTS)}"


def label_of(data: CodeData, rng: random.Random) -> Parameters:
    """Draw a project and one of its labels."""
    path = project(data, rng)
    return {"project": path, "label": rng.choice(sorted(data.projects[path].labels))}


def milestone_of(data: CodeData, rng: random.Random) -> Parameters:
    """Draw a project and one of its milestones."""
    path = project(data, rng)
    return {"project": path, "milestone": rng.choice(data.projects[path].milestones).title}


def issue_of(data: CodeData, rng: random.Random) -> Parameters:
    """Draw a project and one of its open issues."""
    path = project(data, rng)
    return {"project": path, "title": rng.choice(findable(data.projects[path].issues)).title}


def request_of(data: CodeData, rng: random.Random) -> Parameters:
    """Draw a project and one of its open merge requests that is no draft."""
    while True:
        path = project(data, rng)
        ready = [item for item in findable(data.projects[path].requests) if not item.draft]
        if ready:
            return {"project": path, "title": rng.choice(ready).title}


def member_of(data: CodeData, rng: random.Random) -> Parameters:
    """Draw a project that the user manages and another member who is no owner."""
    path = managed(data, rng)
    names = [name for name, role in data.projects[path].members.items() if name != ME and role != "Owner"]
    return {"project": path, "user": rng.choice(sorted(names))}


def stranger_of(data: CodeData, rng: random.Random) -> Parameters:
    """Draw a project that the user manages and somebody who is no member."""
    path = managed(data, rng)
    return {"project": path, "user": rng.choice(sorted(set(data.users) - set(data.projects[path].members)))}


def two_users(data: CodeData, rng: random.Random) -> Parameters:
    """Draw two different users."""
    first, second = rng.sample(sorted(set(data.users) - {ME}), 2)
    return {"first": first, "second": second}


def colleague(p: Parameters, data: CodeData, rng: random.Random) -> str:
    """Draw a member of the parameters' project."""
    return rng.choice(sorted(data.projects[p["project"]].members))


def with_colleague(sampler: Sampler, name: str = "user") -> Sampler:
    """Return a sampler that adds a member of the project drawn."""

    def sample(data: CodeData, rng: random.Random) -> Parameters:
        parameters = sampler(data, rng)
        return {**parameters, name: colleague(parameters, data, rng)}

    return sample


def findable(items: Mapping[int, Item]) -> list[Item]:
    """Return the open items that a search for their subject shows on its first page."""
    shown = []
    for item in items.values():
        if item.state == "open" and len(alike(items, item.title)) < ISSUES_PER_PAGE:
            shown.append(item)
    return shown


def alike(items: Mapping[int, Item], title: str) -> list[Item]:
    """Return the other open items about the same thing."""
    return [i for i in items.values() if i.state == "open" and i.title != title and subject(i.title) == subject(title)]


def issue(p: Parameters, data: CodeData) -> Issue:
    """Return the issue that the parameters name."""
    return next(i for i in data.projects[p["project"]].issues.values() if i.title == p["title"])


def issue_path(p: Parameters, data: CodeData) -> str:
    """Return the path of the issue that the parameters name."""
    return f"/{p['project']}/issues/{issue(p, data).number}"


def next_issue_path(p: Parameters, data: CodeData) -> str:
    """Return the path that the project's next issue will have."""
    return f"/{p['project']}/issues/{max(data.projects[p['project']].issues) + 1}"


def request(p: Parameters, data: CodeData) -> MergeRequest:
    """Return the merge request that the parameters name."""
    return next(i for i in data.projects[p["project"]].requests.values() if i.title == p["title"])


def request_path(p: Parameters, data: CodeData) -> str:
    """Return the path of the merge request that the parameters name."""
    return f"/{p['project']}/merge_requests/{request(p, data).number}"


def milestone(p: Parameters, data: CodeData) -> Milestone:
    """Return the milestone that the parameters name."""
    return next(m for m in data.projects[p["project"]].milestones if m.title == p["milestone"])


def open_with(project: Project, label: str = "", assignee: str = "") -> list[Issue]:
    """Return the project's open issues of a label or an assignee, latest first."""
    found = [i for i in project.issues.values() if i.state == "open" and assignee in ("", i.assignee)]
    return sorted((i for i in found if not label or label in i.labels), key=lambda i: -i.number)
