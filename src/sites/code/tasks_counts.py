"""The code host's tasks whose answer is a number: commits and issues.

Owns their instructions, parameters, evaluations, milestones and experts. Draws are repeated where a
careless choice (another author, label or project of the same name) would give the same number.
"""

from __future__ import annotations

import random
from datetime import date, timedelta

from records.episodes import Task
from sites import checks
from sites.code import checks as c
from sites.code import experts as e
from sites.code import sampling as s
from sites.code import words
from sites.code.data import CodeData, Commit
from sites.old_form import Expert, Parameters, TaskTemplate


def _range(d: CodeData, rng: random.Random) -> Parameters:
    """Draw a project, an author and two days between which the author made commits."""
    path = s.project(d, rng)
    commit = rng.choice(d.projects[path].commits)
    since, until = commit.day - timedelta(days=rng.randrange(3, 25)), commit.day + timedelta(days=rng.randrange(3, 25))
    return {"project": path, "user": commit.author, "since": str(since), "until": str(until)}


def _commits(p: Parameters, d: CodeData) -> list[Commit]:
    first, last = date.fromisoformat(p["since"]), date.fromisoformat(p["until"])
    return [commit for commit in d.projects[p["project"]].commits if first <= commit.day <= last]


def _count_is_distinct(p: Parameters, d: CodeData) -> bool:
    """Whether other authors, other days and projects of the same name give other numbers."""
    authors = [commit.author for commit in _commits(p, d)]
    mine = authors.count(p["user"])
    others = [authors.count(name) for name in set(authors) - {p["user"]}]
    ever = sum(commit.author == p["user"] for commit in d.projects[p["project"]].commits)
    name = p["project"].split("/")[1]
    for path in (path for path, other in d.projects.items() if name in other.name and path != p["project"]):
        there = [commit.author for commit in _commits({**p, "project": path}, d)]
        others += [there.count(p["user"]), len(there)]
    return mine not in (*others, len(authors), ever)


def _ask_commits(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    yield from e.open_menu("Commits")
    yield from e.choose("Author", p["user"])
    yield from e.write("From", p["since"])
    yield from e.write("Until", p["until"])
    seen = yield from e.click("Filter", "button")
    yield from e.finish(e.number_of("Commits", seen), r"(?<!\S)\d{1,2}(?!\S)")


def _count(p: Parameters, d: CodeData) -> int:
    issues = d.projects[p["project"]].issues.values()
    return sum(p["label"] in issue.labels and issue.state == p["state"] for issue in issues)


def _issue_count_is_distinct(p: Parameters, d: CodeData) -> bool:
    """Whether other labels, other states and projects of the same name give other numbers."""
    name = p["project"].split("/")[1]
    alike = [path for path, project in d.projects.items() if name in project.name]
    asked = [
        {"project": path, "label": label, "state": state}
        for path in alike
        for label in d.projects[path].labels
        for state in ("open", "closed")
        if (path, label, state) != (p["project"], p["label"], p["state"])
        and (path == p["project"]) + (label == p["label"]) + (state == p["state"]) == 2
    ]
    return all(_count(q, d) != _count(p, d) for q in asked)


def _ask_issues(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    yield from e.open_menu("Issues")
    yield from e.choose("State", p["state"], "open|closed")
    yield from e.choose("Label", p["label"], e.one_of(words.LABELS))
    seen = yield from e.click("Filter", "button")
    yield from e.finish(e.number_of("Issues", seen), r"(?<!\S)\d{1,2}(?!\S)")


COMMIT_COUNT = TaskTemplate(
    name="code.commit_count",
    site="code",
    intent="How many commits did {user} make to {project} from {since} until {until}? Answer with a number.",
    sample=s.until(_range, _count_is_distinct),
    evaluation=lambda p, d: checks.answer(str(sum(commit.author == p["user"] for commit in _commits(p, d)))),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "commits", "commits"),
        ("choose the author", checks.has("Author", p["user"])),
        (
            "choose author and days",
            c.filtered(f"/{p['project']}/commits", author=p["user"], since=p["since"], until=p["until"]),
        ),
    ),
    expert=_ask_commits,
    horizon=9,
)

COUNT_ISSUES = TaskTemplate(
    name="code.count_issues",
    site="code",
    intent="How many {state} issues with the label {label} does the project {project} have? Answer with a number.",
    sample=s.until(s.joined(s.label_of, s.draw(state=s.one_of(("open", "closed")))), _issue_count_is_distinct),
    evaluation=lambda p, d: checks.answer(str(_count(p, d))),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "issues", "issues"),
        ("choose the label", checks.has("Label", p["label"])),
        ("show the issues", c.filtered(f"/{p['project']}/issues", state=p["state"], label=p["label"])),
    ),
    expert=_ask_issues,
    horizon=8,
    split="validation",
)

COUNTS = (COMMIT_COUNT, COUNT_ISSUES)
"""Templates that ask for a number."""
