"""The code host's base data, generated from a seed: 25 users, 28 projects and what is in them.

Owns the draws. Invariants: the same seed gives the same data; stars differ between all projects, so
that "most starred" is never a tie; some users' fields, issues' due dates and milestones' ends are missing, so
that some questions have no answer.
"""

from __future__ import annotations

import random
from datetime import date, timedelta

from sites.code import words
from sites.code.data import (
    ME,
    TODAY,
    VISIBILITIES,
    CodeData,
    Comment,
    Commit,
    Issue,
    MergeRequest,
    Milestone,
    Project,
    Todo,
    User,
)

_MEMBERS = 7
_ISSUES = 18
_REQUESTS = 8
_TODOS = 84
_TODO_AUTHORS = 14


def build(seed: int) -> CodeData:
    """Generate the code host of this seed."""
    rng = random.Random(f"code {seed}")
    users = {name: _user(rng, name) for name in sorted((*words.USERS, ME))}
    places = [(group, name) for group, names in words.GROUPS.items() for name in names]
    places += [(ME, name) for name in words.MINE]
    stars = rng.sample(range(3, 300), len(places))
    projects = [_project(rng, *place, count) for place, count in zip(places, stars, strict=True)]
    return CodeData(users, {p.path: p for p in projects}, _todos(rng, projects), tuple(words.GROUPS))


def _user(rng: random.Random, name: str) -> User:
    def maybe(value: str) -> str:
        return value if rng.random() < 0.7 else ""

    company, place = rng.choice(words.COMPANIES), rng.choice(words.PLACES)
    return User(name, maybe(f"{name}@{company.lower()}.example"), maybe(place), maybe(company))


def _project(rng: random.Random, group: str, name: str, stars: int) -> Project:
    role = "Owner" if group == ME else rng.choice(("Maintainer", "Maintainer", "Maintainer", "Owner", "Developer"))
    members = {ME: role, **_members(rng, has_owner=role == "Owner")}
    people = sorted(members)
    commits = _commits(rng, people)
    labels = {label: words.LABELS[label] for label in sorted(rng.sample(sorted(words.LABELS), 5))}
    milestones = _milestones(rng)
    return Project(
        group=group,
        name=name,
        about=rng.choice(words.ABOUT).format(name=name, group=group),
        visibility=rng.choice(VISIBILITIES),
        default_branch="main",
        stars=stars,
        updated=commits[0].day,
        branches={branch: _files(rng, name) for branch in ("main", *words.BRANCHES)},
        commits=commits,
        members=members,
        labels=labels,
        milestones=milestones,
        issues=_issues(rng, people, sorted(labels), [m.title for m in milestones]),
        requests=_requests(rng, people),
    )


def _members(rng: random.Random, has_owner: bool) -> dict[str, str]:
    names = rng.sample(words.USERS, _MEMBERS)
    roles = [rng.choice(("Guest", "Reporter", "Developer", "Maintainer")) for _ in names]
    if not has_owner:
        roles[0] = "Owner"
    return dict(sorted(zip(names, roles, strict=True)))


def _files(rng: random.Random, name: str) -> dict[str, str]:
    return {
        "LICENSE": words.LICENSES[rng.choice(sorted(words.LICENSES))],
        "README.md": f"This is {name}. {rng.choice(words.FILE_TEXTS).capitalize()}.",
        "config.yml": f"name: {name}\nretries: {rng.randrange(1, 9)}",
        "docs/guide.md": f"How to use {name}: {rng.choice(words.FILE_TEXTS)}.",
        "src/main.py": f'print("{name}")',
    }


def _title(rng: random.Random, used: set[str]) -> str:
    while True:
        title = f"{rng.choice(words.VERBS)} {rng.choice(words.OBJECTS)}"
        if title not in used:
            used.add(title)
            return title


def _commits(rng: random.Random, people: list[str]) -> tuple[Commit, ...]:
    """Return 30 to 44 commits over the last months, newest first; a few people wrote most of them."""
    authors = rng.sample(people, 5)
    day, commits = TODAY - timedelta(days=rng.randrange(6)), []
    for _ in range(rng.randrange(30, 45)):
        author = rng.choices(authors, weights=(5, 4, 3, 2, 1))[0]
        commits.append(Commit(f"{rng.getrandbits(32):08x}", _title(rng, set()), author, day))
        day -= timedelta(days=rng.choice((0, 0, 1, 2, 4)))
    return tuple(commits)


def _milestones(rng: random.Random) -> tuple[Milestone, ...]:
    found = []
    for number, title in enumerate(words.MILESTONES, start=1):
        start = _day(rng, 40 * number - 120, 20)
        end = None if rng.random() < 0.35 else start + timedelta(days=rng.randrange(14, 40))
        found.append(Milestone(number, title, start, end))
    return tuple(found)


def _day(rng: random.Random, after: int, within: int) -> date:
    return TODAY + timedelta(days=after + rng.randrange(within))


def _comments(rng: random.Random, people: list[str]) -> tuple[Comment, ...]:
    return tuple(Comment(rng.choice(people), rng.choice(words.COMMENTS)) for _ in range(rng.randrange(3)))


def _issues(rng: random.Random, people: list[str], labels: list[str], milestones: list[str]) -> dict[int, Issue]:
    used: set[str] = set()
    return {
        number: Issue(
            number=number,
            title=_title(rng, used),
            body=rng.choice(words.ISSUE_TEXTS),
            author=rng.choice(people),
            day=TODAY - timedelta(days=4 * (_ISSUES - number) + rng.randrange(1, 4)),
            labels=tuple(sorted(rng.sample(labels, rng.choice((1, 1, 2))))),
            assignee=rng.choice((*people, "")),
            milestone=rng.choice((*milestones, "")),
            due=_day(rng, 1, 60) if rng.random() < 0.55 else None,
            state="open" if rng.random() < 0.7 else "closed",
            comments=_comments(rng, people),
        )
        for number in range(1, _ISSUES + 1)
    }


def _requests(rng: random.Random, people: list[str]) -> dict[int, MergeRequest]:
    used: set[str] = set()
    others = [name for name in people if name != ME]
    states = ["open"] * 4 + ["merged"] * 3 + ["closed"]
    rng.shuffle(states)
    return {
        number: MergeRequest(
            number=number,
            title=_title(rng, used),
            body=rng.choice(words.ISSUE_TEXTS),
            author=rng.choice(others),
            source=rng.choice(words.BRANCHES),
            target="main",
            reviewer=rng.choice((*people, "")),
            state=state,
            draft=state == "open" and rng.random() < 0.2,
            comments=_comments(rng, people),
        )
        for number, state in zip(range(1, _REQUESTS + 1), states, strict=True)
    }


def _todos(rng: random.Random, projects: list[Project]) -> tuple[Todo, ...]:
    """Return what waits for the user: items about open issues and merge requests by several people."""
    people = rng.sample(words.USERS, _TODO_AUTHORS)
    todos = []
    for number in range(1, _TODOS + 1):
        project, kind = rng.choice(projects), rng.choice(("assigned", "mentioned", "review"))
        pages = project.requests if kind == "review" else project.issues
        page = rng.choice([item for item in pages.values() if item.state == "open"])
        path = f"/{project.path}/{'merge_requests' if kind == 'review' else 'issues'}/{page.number}"
        todos.append(Todo(number, kind, rng.choice(people), project.path, page.title, path))
    return tuple(todos)
