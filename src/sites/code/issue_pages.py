"""Pages about issues: the list with its filters, one issue, forms to create and edit, comments, closing.

Owns their route handlers. Messages after a change say how many open issues are left with the issue's labels and
of the former assignee, so that a visitor who works through a list knows when it is done.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import logged_in
from sites.code.access import known_issue, known_project, session, writable_project
from sites.code.data import TODAY, Issue, Project
from sites.forms import Filling, form, refuse_if, show
from sites.paging import listing
from sites.queries import chosen, read_date, words_of
from sites.rendering import clean_text, render, see_other

ISSUES_PER_PAGE = 5
ISSUE_STATES = ("open", "closed", "all")


def issue_list(request: Request) -> Response:
    """Show a project's issues: open ones unless asked otherwise, of a label, an assignee, a title."""
    project, word = known_project(request), words_of(request, "find")
    show = chosen(request, "state", ISSUE_STATES, ISSUE_STATES[0])
    label = chosen(request, "label", project.labels, "")
    assignee = chosen(request, "assignee", project.members, "")
    found = [
        issue
        for issue in sorted(project.issues.values(), key=lambda i: -i.number)
        if show in ("all", issue.state)
        and (not label or label in issue.labels)
        and assignee in ("", issue.assignee)
        and word in issue.title.lower()
    ]
    context: dict[str, Any] = {"show": show, "states": ISSUE_STATES, "label": label, "assignee": assignee, "word": word}
    issues = listing(request, found, ISSUES_PER_PAGE)
    return render(request, "code/issues.html", project=project, issues=issues, **context)


def issue_page(request: Request) -> Response:
    """Show one issue with its comments."""
    project = known_project(request)
    return render(request, "code/issue.html", project=project, issue=known_issue(request, project), errors=())


@logged_in
async def new_issue(request: Request) -> Response:
    """Show the form for a new issue, or create it."""
    project = known_project(request)
    blank = Issue(max(project.issues, default=0) + 1, "", "", session(request).me or "", TODAY)
    return await _form(request, project, blank, "created")


@logged_in
async def edit_issue(request: Request) -> Response:
    """Show the form for an issue, or save it."""
    project = writable_project(request)
    return await _form(request, project, known_issue(request, project), "saved")


@logged_in
@form("code/issue.html")
def comment(request: Request) -> Filling:
    """Add a comment to an issue."""
    state, project = session(request), known_project(request)
    issue = known_issue(request, project)
    sent = yield show({"body": ""}, project=project, issue=issue)
    refuse_if((not sent["body"], "Write a comment first."))
    state.save_issue(project, replace(issue, comments=(*issue.comments, state.comment(sent["body"]))))
    state.flash("Your comment was added.")
    return f"/{project.path}/issues/{issue.number}"


@logged_in
async def toggle(request: Request) -> Response:
    """Close an open issue, open a closed one."""
    state, project = session(request), writable_project(request)
    issue = known_issue(request, project)
    closing = issue.state == "open"
    state.save_issue(project, replace(issue, state="closed" if closing else "open"))
    state.flash(f"Issue #{issue.number} was {'closed' if closing else 'opened again'}.")
    for label in issue.labels:
        left = (state.project(project.path) or project).open_issues(label=label)
        state.flash(f"Open issues with {label}: {len(left)}")
    return see_other(f"/{project.path}/issues/{issue.number}")


async def _form(request: Request, project: Project, before: Issue, done: str) -> Response:
    """Show the form of an issue as it was ``before``, or take it; several boxes of it have the name ``label``."""
    state, issue, errors = session(request), before, list[str]()
    if request.method == "POST":
        issue, errors = _read(await request.form(max_files=0), project, before)
    if request.method != "POST" or errors:
        page = {"project": project, "issue": issue, "errors": errors}
        return render(request, "code/issue_form.html", status_code=422 if errors else 200, **page)
    state.save_issue(project, issue)
    state.flash(f"Issue #{issue.number} was {done}.")
    if before.assignee and before.assignee != issue.assignee:
        left = (state.project(project.path) or project).open_issues(assignee=before.assignee)
        state.flash(f"Open issues of {before.assignee}: {len(left)}")
    return see_other(f"/{project.path}/issues/{issue.number}")


def _read(sent: FormData, project: Project, issue: Issue) -> tuple[Issue, list[str]]:
    """Return ``issue`` with what was sent says, and what is wrong with it."""
    fields = {name: clean_text(value) for name, value in sent.multi_items() if isinstance(value, str)}
    ticked = {value for name, value in sent.multi_items() if name == "label"}
    errors = [] if fields.get("title") else ["An issue needs a title."]
    due = issue.due
    try:
        due = read_date(fields.get("due", ""))
    except ValueError:
        errors.append("A due date is written as 2024-06-03.")
    assignee, milestone = fields.get("assignee", ""), fields.get("milestone", "")
    changed = replace(
        issue,
        title=fields.get("title", ""),
        body=fields.get("body", ""),
        labels=tuple(label for label in project.labels if label in ticked),
        assignee=assignee if assignee in project.members else "",
        milestone=milestone if milestone in {m.title for m in project.milestones} else "",
        due=due,
    )
    return changed, errors


_P = "/{group}/{project}/issues"
ROUTES = (
    Route(_P, issue_list),
    Route(f"{_P}/new", new_issue, methods=["GET", "POST"]),
    Route(f"{_P}/{{number:int}}", issue_page),
    Route(f"{_P}/{{number:int}}/edit", edit_issue, methods=["GET", "POST"]),
    Route(f"{_P}/{{number:int}}/comment", comment, methods=["POST"]),
    Route(f"{_P}/{{number:int}}/toggle", toggle, methods=["POST"]),
)
"""Routes of this module."""
