"""The code host's tasks about single issues: listing, creating, editing, commenting, labelling.

Owns their instructions, parameters, evaluations, milestones and experts.
"""

from __future__ import annotations

from records.episodes import Task
from sites import checks
from sites.code import checks as c
from sites.code import experts as e
from sites.code import sampling as s
from sites.code import words
from sites.code.data import ME
from sites.old_form import Expert, TaskTemplate


def _assign(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    yield from e.open_issue(p["title"])
    yield from e.click("Edit", "link")
    yield from e.choose("Assignee", p["user"], e.NAMES)
    yield from e.write("Due date", p["due"])
    yield from e.click("Save changes", "button")
    yield from e.finish()


def _create(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    yield from e.open_menu("Issues")
    seen = yield from e.click("New issue", "link")
    yield from e.write("Title", p["title"])
    yield from e.tick_label(seen, p["label"])
    yield from e.choose("Assignee", p["user"], e.NAMES)
    yield from e.write("Due date", p["due"])
    yield from e.click("Create issue", "button")
    yield from e.finish()


def _triage(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    yield from e.open_issue(p["title"])
    seen = yield from e.click("Edit", "link")
    yield from e.tick_label(seen, p["label"])
    yield from e.choose("Assignee", p["user"], e.NAMES)
    yield from e.choose("Milestone", p["milestone"])
    yield from e.click("Save changes", "button")
    yield from e.comment(p["text"])
    yield from e.finish()


def _label_issue(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    yield from e.open_menu("Labels")
    yield from e.click("New label", "link")
    yield from e.write("Title", p["label"])
    yield from e.click("Create label", "button")
    yield from e.open_issue(p["title"])
    seen = yield from e.click("Edit", "link")
    yield from e.tick_label(seen, p["label"])
    yield from e.click("Save changes", "button")
    yield from e.finish()


LIST_ISSUES = TaskTemplate(
    name="code.list_issues",
    site="code",
    intent="List the {state} issues of the project {project} with the label {label}.",
    sample=s.joined(s.label_of, s.draw(state=s.one_of(("open", "closed", "all")))),
    evaluation=lambda p, d: c.ends_at(f"/{p['project']}/issues?state={p['state']}&label={p['label']}"),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "issues", "issues"),
        ("choose the label", checks.both(c.at(f"/{p['project']}/issues*"), checks.has("Label", p["label"]))),
        ("show the issues", c.filtered(f"/{p['project']}/issues", state=p["state"], label=p["label"])),
    ),
    expert=e.script(
        lambda t: e.open_project(t.parameters["project"]),
        lambda t: e.open_menu("Issues"),
        lambda t: e.choose("State", t.parameters["state"]),
        lambda t: e.choose("Label", t.parameters["label"], e.one_of(words.LABELS)),
        lambda t: e.click("Filter", "button"),
    ),
    horizon=8,
)

COMMENT_ISSUE = TaskTemplate(
    name="code.comment_issue",
    site="code",
    intent="Comment on the issue {title} of the project {project}: {text}",
    sample=s.joined(s.issue_of, s.draw(text=s.one_of(words.NEW_COMMENTS))),
    evaluation=lambda p, d: checks.pages(c.commented(s.issue_path(p, d), p["text"])),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "issues", "issues"),
        ("write the comment", checks.both(c.at(s.issue_path(p, d)), checks.has("Comment", p["text"]))),
        ("add it", checks.both(c.at(s.issue_path(p, d)), checks.shows("was added", f"{ME}: {p['text']}"))),
    ),
    expert=e.script(
        lambda t: e.open_project(t.parameters["project"]),
        lambda t: e.open_issue(t.parameters["title"]),
        lambda t: e.comment(t.parameters["text"]),
    ),
    horizon=9,
)

ASSIGN_ISSUE = TaskTemplate(
    name="code.assign_issue",
    site="code",
    intent="Assign the issue {title} of the project {project} to {user}, due {due}.",
    sample=s.until(
        s.joined(s.with_colleague(s.issue_of), s.draw(due=s.day(5, 60))),
        lambda p, d: s.issue(p, d).assignee != p["user"] and str(s.issue(p, d).due) != p["due"],
    ),
    evaluation=lambda p, d: checks.pages(*c.contents(s.issue_path(p, d), assignee=p["user"], due=p["due"])),
    milestones=lambda p, d: checks.milestones(
        ("open the project", c.at(f"/{p['project']}*")),
        ("open the issue", c.at(f"{s.issue_path(p, d)}*")),
        (
            "fill in the form",
            checks.both(
                c.at(f"{s.issue_path(p, d)}/edit"), checks.has("Assignee", p["user"]), checks.has("Due date", p["due"])
            ),
        ),
        ("save it", checks.both(c.at(s.issue_path(p, d)), checks.shows("was saved", p["user"], p["due"]))),
    ),
    expert=_assign,
    horizon=11,
)

CREATE_ISSUE = TaskTemplate(
    name="code.create_issue",
    site="code",
    intent="Create the issue {title} in {project} with the label {label}, assigned to {user}, due {due}.",
    sample=s.joined(s.with_colleague(s.label_of), s.draw(title=s.new_title, due=s.day(5, 60))),
    evaluation=lambda p, d: checks.pages(
        *c.contents(s.next_issue_path(p, d), title=p["title"], labels=p["label"], assignee=p["user"], due=p["due"])
    ),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "issues/new", "form for a new issue"),
        (
            "fill in the form",
            checks.both(
                checks.has("Title", p["title"]),
                checks.has(p["label"], "checked"),
                checks.has("Assignee", p["user"]),
                checks.has("Due date", p["due"]),
            ),
        ),
        ("create the issue", checks.both(c.at(s.next_issue_path(p, d)), checks.shows("was created", p["title"]))),
    ),
    expert=_create,
    horizon=11,
)

LABEL_ISSUE = TaskTemplate(
    name="code.label_issue",
    site="code",
    intent="Create the label {label} in the project {project} and give it to the issue {title}.",
    sample=s.joined(s.issue_of, s.draw(label=s.one_of(words.NEW_LABELS))),
    evaluation=lambda p, d: checks.pages(
        c.equals(s.issue_path(p, d), "#labels", " ".join(sorted((*s.issue(p, d).labels, p["label"]))))
    ),
    milestones=lambda p, d: checks.milestones(
        ("open the form for a new label", c.at(f"/{p['project']}/labels/new")),
        ("create the label", checks.both(c.at(f"/{p['project']}/labels"), checks.has(p["label"]))),
        ("tick it", checks.both(c.at(f"{s.issue_path(p, d)}/edit"), checks.has(p["label"], "checked"))),
        ("save the issue", checks.both(c.at(s.issue_path(p, d)), checks.has(p["label"]), checks.shows("was saved"))),
    ),
    expert=_label_issue,
    horizon=15,
)

TRIAGE = TaskTemplate(
    name="code.triage_issue",
    site="code",
    intent=(
        "Give the issue {title} of {project} the label {label}, the assignee {user} and the milestone {milestone}, "
        "then comment: {text}"
    ),
    sample=s.until(
        s.joined(
            s.with_colleague(s.issue_of),
            s.draw(label=s.one_of(words.LABELS), milestone=s.one_of(words.MILESTONES)),
            s.draw(text=s.one_of(words.NEW_COMMENTS)),
        ),
        lambda p, d: (
            p["label"] in set(d.projects[p["project"]].labels) - set(s.issue(p, d).labels)
            and p["user"] != s.issue(p, d).assignee
            and p["milestone"] != s.issue(p, d).milestone
        ),
    ),
    evaluation=lambda p, d: checks.pages(
        c.equals(s.issue_path(p, d), "#labels", " ".join(sorted((*s.issue(p, d).labels, p["label"])))),
        *c.contents(s.issue_path(p, d), assignee=p["user"], milestone=p["milestone"]),
        c.commented(s.issue_path(p, d), p["text"]),
    ),
    milestones=lambda p, d: checks.milestones(
        ("open the issue", c.at(f"{s.issue_path(p, d)}*")),
        (
            "fill in the form",
            checks.both(
                c.at(f"{s.issue_path(p, d)}/edit"),
                checks.has(p["label"], "checked"),
                checks.has("Assignee", p["user"]),
                checks.has("Milestone", p["milestone"]),
            ),
        ),
        ("save it", checks.both(c.at(s.issue_path(p, d)), checks.shows("was saved", p["user"], p["milestone"]))),
        ("add the comment", checks.both(c.at(s.issue_path(p, d)), checks.shows("was added", f"{ME}: {p['text']}"))),
    ),
    expert=_triage,
    horizon=14,
    split="test",
)

ISSUES = (LIST_ISSUES, COMMENT_ISSUE, ASSIGN_ISSUE, CREATE_ISSUE, LABEL_ISSUE, TRIAGE)
"""Templates about single issues."""
