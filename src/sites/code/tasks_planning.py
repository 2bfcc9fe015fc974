"""The code host's tasks about several issues at once, and about milestones: eleven to twenty-seven steps.

Owns their instructions, parameters, evaluations, milestones and experts. Each of them is easily left
unfinished: an issue that was overlooked, a milestone without its issues.
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
from sites.code.data import CodeData, Issue
from sites.old_form import Expert, Parameters, TaskTemplate


def _labelled(p: Parameters, d: CodeData) -> list[Issue]:
    return s.open_with(d.projects[p["project"]], label=p["label"])


def _assigned(p: Parameters, d: CodeData) -> list[Issue]:
    return s.open_with(d.projects[p["project"]], assignee=p["user"])


def _label_matters(p: Parameters, d: CodeData) -> bool:
    """Whether no other label's list begins with an issue that should be closed."""
    project = d.projects[p["project"]]
    lists = [s.open_with(project, label=label) for label in project.labels if label != p["label"]]
    return not any(p["label"] in issues[0].labels for issues in lists if issues)


def _close_labelled(task: Task) -> Expert:
    """Close the first of the list, as often as it has items; the label on an issue's page leads back to the list."""
    p = task.parameters
    yield from e.open_project(p["project"])
    yield from e.open_menu("Issues")
    yield from e.choose("Label", p["label"], e.one_of(words.LABELS))
    seen = yield from e.click("Filter", "button")
    for left in reversed(range(len(e.listed(seen)))):
        yield from e.click(e.listed(seen)[0].name, "link")
        seen = yield from e.click("Close issue", "button")
        if left:
            seen = yield from e.click(p["label"], "link")
    yield from e.finish()


def _show_assigned(user: str) -> e.Skill:
    yield from e.open_menu("Issues")
    yield from e.choose("Assignee", user, e.NAMES)
    return (yield from e.click("Filter", "button"))


def _hand_over(task: Task) -> Expert:
    """Give the first of the list to the other member, as often as the list has items at first."""
    p = task.parameters
    yield from e.open_project(p["project"])
    seen = yield from _show_assigned(p["user"])
    for left in reversed(range(len(e.listed(seen)))):
        yield from e.click(e.listed(seen)[0].name, "link")
        yield from e.click("Edit", "link")
        yield from e.choose("Assignee", p["other"], e.NAMES)
        yield from e.click("Save changes", "button")
        if left:
            seen = yield from _show_assigned(p["user"])
    yield from e.finish()


def _add_milestone(task: Task) -> e.Skill:
    p = task.parameters
    yield from e.open_project(p["project"])
    yield from e.open_menu("Milestones")
    yield from e.click("New milestone", "link")
    yield from e.write("Title", p["title"])
    if "note" in p:
        yield from e.write("Description", p["note"])
    yield from e.write("Start date", p["start"])
    yield from e.write("End date", p["end"])
    return (yield from e.click("Create milestone", "button"))


def _create_milestone(task: Task) -> Expert:
    yield from _add_milestone(task)
    yield from e.finish()


def _plan_release(task: Task) -> Expert:
    p = task.parameters
    yield from _add_milestone(task)
    for title in (p["first"], p["second"]):
        yield from e.open_issue(title)
        yield from e.click("Edit", "link")
        yield from e.choose("Milestone", p["title"])
        yield from e.click("Save changes", "button")
    yield from e.finish()


def _days(d: CodeData, rng: random.Random) -> Parameters:
    start = date.fromisoformat(s.day(5, 60)(d, rng))
    return {"start": str(start), "end": str(start + timedelta(days=rng.randint(7, 60)))}


def _two_issues(d: CodeData, rng: random.Random) -> Parameters:
    path = s.project(d, rng)
    first, second = rng.sample(s.findable(d.projects[path].issues), 2)
    return {"project": path, "first": first.title, "second": second.title}


def _next_milestone(p: Parameters, d: CodeData) -> str:
    return f"/{p['project']}/milestones/{len(d.projects[p['project']].milestones) + 1}"


def _is_created(p: Parameters, d: CodeData) -> checks.Check:
    return checks.both(c.at(_next_milestone(p, d)), checks.shows("was created", p["title"]))


def _path_of(p: Parameters, d: CodeData, title: str) -> str:
    return s.issue_path({**p, "title": title}, d)


CLOSE_LABELLED = TaskTemplate(
    name="code.close_labelled",
    site="code",
    intent="Close all open issues of the project {project} with the label {label}.",
    sample=s.until(s.label_of, lambda p, d: 2 <= len(_labelled(p, d)) <= 5 and _label_matters(p, d)),
    evaluation=lambda p, d: checks.pages(
        *(c.equals(f"/{p['project']}/issues/{i.number}", "#state", "closed") for i in _labelled(p, d)),
        c.equals(
            f"/{p['project']}/issues",
            "#count",
            f"Issues: {len(s.open_with(d.projects[p['project']])) - len(_labelled(p, d))}",
        ),
    ),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "issues", "issues"),
        (
            "close one",
            checks.both(checks.has(p["label"]), checks.shows("was closed", f"Open issues with {p['label']}: ")),
        ),
        (
            "close all",
            checks.both(checks.has(p["label"]), checks.shows("was closed", f"Open issues with {p['label']}: 0")),
        ),
    ),
    expert=_close_labelled,
    horizon=lambda p, d: 6 + 3 * len(_labelled(p, d)),
)

HAND_OVER = TaskTemplate(
    name="code.hand_over",
    site="code",
    intent="Assign all open issues of {user} in the project {project} to {other}.",
    sample=s.until(
        s.with_colleague(s.with_colleague(s.draw(project=s.project)), "other"),
        lambda p, d: p["user"] != p["other"] and 2 <= len(_assigned(p, d)) <= 3,
    ),
    evaluation=lambda p, d: checks.pages(
        *(c.equals(f"/{p['project']}/issues/{i.number}", "#assignee", p["other"]) for i in _assigned(p, d)),
        c.equals(
            f"/{p['project']}/issues?assignee={p['other']}",
            "#count",
            f"Issues: {len(_assigned({**p, 'user': p['other']}, d)) + len(_assigned(p, d))}",
        ),
    ),
    milestones=lambda p, d: checks.milestones(
        ("open the issues", c.at(f"/{p['project']}/issues*")),
        ("show those of the user", c.filtered(f"/{p['project']}/issues", assignee=p["user"])),
        ("hand over one", checks.shows("was saved", f"Open issues of {p['user']}: ")),
        ("hand over all", checks.shows("was saved", f"Open issues of {p['user']}: 0")),
    ),
    expert=_hand_over,
    horizon=lambda p, d: 3 + 8 * len(_assigned(p, d)),
)

CREATE_MILESTONE = TaskTemplate(
    name="code.create_milestone",
    site="code",
    intent="Create the milestone {title} in {project} from {start} to {end} with the description: {note}",
    sample=s.joined(
        s.draw(project=s.project, title=s.one_of(words.NEW_MILESTONES), note=s.one_of(words.MILESTONE_NOTES)), _days
    ),
    evaluation=lambda p, d: checks.pages(
        *c.contents(_next_milestone(p, d), title=p["title"], note=p["note"], start=p["start"], end=p["end"])
    ),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "milestones/new", "form for a new milestone"),
        (
            "fill it in",
            checks.both(
                checks.has("Title", p["title"]),
                checks.has("Description", p["note"]),
                checks.has("Start date", p["start"]),
                checks.has("End date", p["end"]),
            ),
        ),
        ("create the milestone", _is_created(p, d)),
    ),
    expert=_create_milestone,
    horizon=11,
)

PLAN_RELEASE = TaskTemplate(
    name="code.plan_release",
    site="code",
    intent=(
        "In the project {project}, create the milestone {title} from {start} to {end} "
        "and put the issues {first} and {second} into it."
    ),
    sample=s.joined(_two_issues, s.draw(title=s.one_of(words.NEW_MILESTONES)), _days),
    evaluation=lambda p, d: checks.pages(
        *c.contents(_next_milestone(p, d), title=p["title"], start=p["start"], end=p["end"]),
        c.equals(_path_of(p, d, p["first"]), "#milestone", p["title"]),
        c.equals(_path_of(p, d, p["second"]), "#milestone", p["title"]),
    ),
    milestones=lambda p, d: checks.milestones(
        ("open the form for a new milestone", c.at(f"/{p['project']}/milestones/new")),
        ("create the milestone", _is_created(p, d)),
        (
            "put the first issue in",
            checks.both(c.at(_path_of(p, d, p["first"])), checks.shows("was saved", p["title"])),
        ),
        (
            "put the second issue in",
            checks.both(c.at(_path_of(p, d, p["second"])), checks.shows("was saved", p["title"])),
        ),
    ),
    expert=_plan_release,
    horizon=24,
    split="test",
)

PLANNING = (CREATE_MILESTONE, CLOSE_LABELLED, HAND_OVER, PLAN_RELEASE)
"""Templates about several issues and about milestones."""
