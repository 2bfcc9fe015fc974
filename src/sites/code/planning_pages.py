"""Pages about planning: a project's labels and milestones.

Owns their route handlers.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import existing, logged_in
from sites.code.access import known_project, session, writable_project
from sites.code.data import Milestone, Project
from sites.forms import Fields, Filling, form, refuse_if, show
from sites.paging import listing
from sites.queries import read_date
from sites.rendering import render, see_other

MILESTONES_PER_PAGE = 8


def label_list(request: Request) -> Response:
    """Show a project's labels; each leads to its open issues."""
    return render(request, "code/labels.html", project=known_project(request))


@logged_in
@form("code/new_label.html")
def new_label(request: Request) -> Filling:
    """Show the form for a new label, or create it."""
    state, project = session(request), writable_project(request)
    sent = yield show({"title": "", "note": ""}, project=project)
    title = sent["title"]
    refuse_if((not title, "A label needs a title."), (title in project.labels, f"There is already a label {title}."))
    state.change(project, labels=dict(sorted({**project.labels, title: sent["note"]}.items())))
    state.flash(f"Label {title} was created.")
    return f"/{project.path}/labels"


def milestone_list(request: Request) -> Response:
    """Show a project's milestones."""
    project = known_project(request)
    milestones = listing(request, project.milestones, MILESTONES_PER_PAGE)
    return render(request, "code/milestones.html", project=project, milestones=milestones)


def milestone_page(request: Request) -> Response:
    """Show one milestone and its issues."""
    project = known_project(request)
    milestone = _known_milestone(request, project)
    issues = [issue for issue in project.issues.values() if issue.milestone == milestone.title]
    return render(request, "code/milestone.html", project=project, milestone=milestone, issues=issues)


@logged_in
@form("code/new_milestone.html")
def new_milestone(request: Request) -> Filling:
    """Show the form for a new milestone, or create it."""
    state, project = session(request), writable_project(request)
    sent = yield show({"title": "", "note": "", "start": "", "end": ""}, project=project)
    title, (start, end, wrong) = sent["title"], _read_days(sent)
    refuse_if(
        (bool(wrong), wrong),
        (not title, "A milestone needs a title."),
        (title in {milestone.title for milestone in project.milestones}, f"There is already a milestone {title}."),
    )
    made = Milestone(len(project.milestones) + 1, title, start, end, sent["note"])
    state.change(project, milestones=(*project.milestones, made))
    state.flash(f"Milestone {made.title} was created.")
    return f"/{project.path}/milestones/{made.number}"


@logged_in
async def toggle_milestone(request: Request) -> Response:
    """Close an active milestone, activate a closed one."""
    state, project = session(request), writable_project(request)
    before = _known_milestone(request, project)
    after = replace(before, state="closed" if before.state == "active" else "active")
    state.change(project, milestones=tuple(after if m is before else m for m in project.milestones))
    state.flash(f"Milestone {after.title} is {after.state}.")
    return see_other(f"/{project.path}/milestones/{after.number}")


def _read_days(fields: Fields) -> tuple[date | None, date | None, str]:
    """Return start, end and what is wrong with them, "" for nothing."""
    try:
        start, end = read_date(fields["start"]), read_date(fields["end"])
    except ValueError:
        return None, None, "A day is written as 2024-06-03."
    return start, end, "A milestone cannot end before it starts." if start and end and end < start else ""


def _known_milestone(request: Request, project: Project) -> Milestone:
    return existing(next((m for m in project.milestones if m.number == request.path_params["number"]), None))


_P = "/{group}/{project}"
ROUTES = (
    Route(f"{_P}/labels", label_list),
    Route(f"{_P}/labels/new", new_label, methods=["GET", "POST"]),
    Route(f"{_P}/milestones", milestone_list),
    Route(f"{_P}/milestones/new", new_milestone, methods=["GET", "POST"]),
    Route(f"{_P}/milestones/{{number:int}}", milestone_page),
    Route(f"{_P}/milestones/{{number:int}}/toggle", toggle_milestone, methods=["POST"]),
)
"""Routes of this module."""
