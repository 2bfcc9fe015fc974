"""The code host's tasks that ask for a fact; for some the site has no answer.

Owns their instructions, parameters, evaluations, milestones and experts. Draws are repeated where a
neighbour (a user, issue or milestone of a similar name) would give the same answer.
"""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.code import checks as c
from sites.code import experts as e
from sites.code import sampling as s
from sites.code import words
from sites.code.data import ME, ROLES, CodeData
from sites.old_form import Expert, Parameters, TaskTemplate

_FACTS = ("email", "location", "company")
_FACT_RIVALS = rf"\S+@\S+|{e.one_of((*words.PLACES, *words.COMPANIES))}"


def _fact(p: Parameters, d: CodeData, name: str | None = None) -> str:
    return str(getattr(d.users[name or p["user"]], p["field"]))


def _fact_is_distinct(p: Parameters, d: CodeData) -> bool:
    alike = [name for name in d.users if p["user"] in name and name != p["user"]]
    return all(_fact(p, d) != _fact(p, d, name) for name in alike)


def _ask_fact(task: Task) -> Expert:
    seen = yield from e.open_user(task.parameters["user"])
    yield from e.finish(e.fact(task.parameters["field"].capitalize(), seen), _FACT_RIVALS)


def _role(p: Parameters, d: CodeData) -> str:
    return d.projects[p["project"]].members.get(p["user"], "")


def _member_or_not(d: CodeData, rng: random.Random) -> Parameters:
    """Draw a project and a user who is a member of it more often than not."""
    path = s.project(d, rng)
    members = sorted(set(d.projects[path].members) - {ME})
    return {"project": path, "user": rng.choice(members) if rng.random() < 0.6 else s.user(d, rng)}


def _role_is_distinct(p: Parameters, d: CodeData) -> bool:
    """Whether projects of the same name give other answers."""
    name = p["project"].split("/")[1]
    others = [path for path, other in d.projects.items() if name in other.name and path != p["project"]]
    return all(_role({**p, "project": path}, d) != _role(p, d) for path in others)


def _ask_role(task: Task) -> Expert:
    yield from e.open_project(task.parameters["project"])
    seen = yield from e.open_menu("Members")
    rows = dict(line.split(" | ") for line in seen.text.splitlines() if line.count(" | ") == 1 and "(" not in line)
    yield from e.finish(rows.get(task.parameters["user"], checks.UNANSWERABLE), "|".join(ROLES))


def _end(p: Parameters, d: CodeData) -> str:
    return str(s.milestone(p, d).end or "")


def _end_is_distinct(p: Parameters, d: CodeData) -> bool:
    name = p["project"].split("/")[1]
    ends = [str(m.end or "") for o in d.projects.values() if name in o.name for m in o.milestones]
    return ends.count(_end(p, d)) == 1


def _ask_end(task: Task) -> Expert:
    yield from e.open_project(task.parameters["project"])
    yield from e.open_menu("Milestones")
    seen = yield from e.click(task.parameters["milestone"], "link", rivals=r"v\d\.\d")
    yield from e.finish(e.fact("Ends", seen), e.DAYS)


def _due(p: Parameters, d: CodeData) -> str:
    return str(s.issue(p, d).due or "")


def _due_is_distinct(p: Parameters, d: CodeData) -> bool:
    return all(i.due != s.issue(p, d).due for i in s.alike(d.projects[p["project"]].issues, p["title"]))


def _ask_due(task: Task) -> Expert:
    yield from e.open_project(task.parameters["project"])
    seen = yield from e.open_issue(task.parameters["title"])
    yield from e.finish(e.fact("Due", seen), e.DAYS)


USER_FACT = TaskTemplate(
    name="code.user_fact",
    site="code",
    intent="What is the {field} of the user {user}?",
    sample=s.until(s.draw(field=s.one_of(_FACTS), user=s.user), _fact_is_distinct),
    evaluation=lambda p, d: checks.answer_or_none(_fact(p, d), f"The profile of {p['user']} shows no {p['field']}."),
    milestones=lambda p, d: checks.milestones(
        ("see a search box", checks.has("Search", role="searchbox")),
        ("search for something", c.at("/search*")),
        ("find the user", checks.both(c.at("/search*"), checks.has(p["user"], role="link"))),
        ("open the profile", c.at(f"/users/{p['user']}")),
    ),
    expert=_ask_fact,
    horizon=3,
)

ROLE_OF = TaskTemplate(
    name="code.role_of",
    site="code",
    intent="What is the role of {user} in the project {project}?",
    sample=s.until(_member_or_not, _role_is_distinct),
    evaluation=lambda p, d: checks.answer_or_none(_role(p, d), f"{p['user']} is no member of {p['project']}."),
    milestones=lambda p, d: checks.milestones(
        ("search for the project", c.at("/search*")),
        ("open the project", c.at(f"/{p['project']}")),
        ("open a menu", checks.both(c.at(f"/{p['project']}"), checks.has("Members"))),
        ("open its members", c.at(f"/{p['project']}/members")),
    ),
    expert=_ask_role,
    horizon=5,
)

MILESTONE_END = TaskTemplate(
    name="code.milestone_end",
    site="code",
    intent="When does the milestone {milestone} of the project {project} end?",
    sample=s.until(s.milestone_of, _end_is_distinct),
    evaluation=lambda p, d: checks.answer_or_none(_end(p, d), f"The milestone {p['milestone']} has no end date."),
    milestones=lambda p, d: checks.milestones(
        ("search for the project", c.at("/search*")),
        *c.finding(p["project"], "milestones", "milestone", f"/{p['project']}/milestones/{s.milestone(p, d).number}"),
    ),
    expert=_ask_end,
    horizon=6,
)

ISSUE_DUE = TaskTemplate(
    name="code.issue_due",
    site="code",
    intent="When is the issue {title} of the project {project} due?",
    sample=s.until(s.issue_of, _due_is_distinct),
    evaluation=lambda p, d: checks.answer_or_none(_due(p, d), f"The issue {p['title']} has no due date."),
    milestones=lambda p, d: checks.milestones(
        ("search for the project", c.at("/search*")),
        *c.finding(p["project"], "issues", "issue", s.issue_path(p, d)),
    ),
    expert=_ask_due,
    horizon=7,
)

QUESTIONS = (USER_FACT, ROLE_OF, MILESTONE_END, ISSUE_DUE)
"""Templates that ask."""
