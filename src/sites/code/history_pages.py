"""Pages about a project's history: commits, branches, and forks of the project.

Owns their route handlers.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import existing, logged_in
from sites.code.access import known_project, session, writable_project
from sites.code.data import ME
from sites.code.home_pages import name_rules
from sites.forms import Filling, form, refuse_if, show
from sites.paging import listing
from sites.queries import chosen, read_date
from sites.rendering import render

COMMITS_PER_PAGE = 5
_BRANCH = re.compile(r"[a-z0-9][a-z0-9._-]*")


def commit_list(request: Request) -> Response:
    """Show the commits of a branch, of one author or all, made between two days."""
    state, project = session(request), known_project(request)
    branch = chosen(request, "branch", project.branches, project.default_branch)
    commits = state.commits(project, branch)
    authors = sorted({commit.author for commit in commits})
    author = chosen(request, "author", authors, "")
    since, until = request.query_params.get("since", ""), request.query_params.get("until", "")
    errors = []
    try:
        first, last = read_date(since), read_date(until)
        if first and last and last < first:
            errors.append("The range ends before it starts.")
        commits = [c for c in commits if (not first or c.day >= first) and (not last or c.day <= last)]
    except ValueError:
        errors.append("A day is written as 2024-06-03.")
    found = listing(request, [c for c in commits if author in ("", c.author)], COMMITS_PER_PAGE)
    context: dict[str, Any] = {"branch": branch, "authors": authors, "author": author, "since": since, "until": until}
    return render(request, "code/commits.html", project=project, commits=found, errors=errors, **context)


def commit_page(request: Request) -> Response:
    """Show one commit."""
    project = known_project(request)
    commit = existing(next((c for c in project.commits if c.sha == request.path_params["sha"]), None))
    return render(request, "code/commit.html", project=project, commit=commit)


def branch_list(request: Request) -> Response:
    """Show a project's branches."""
    return render(request, "code/branches.html", project=known_project(request))


@logged_in
@form("code/new_branch.html")
def new_branch(request: Request) -> Filling:
    """Show the form for a new branch, or create it."""
    state, project = session(request), writable_project(request)
    sent = yield show({"name": "", "source": project.default_branch}, project=project)
    name, source = sent["name"], sent["source"]
    refuse_if(
        (_BRANCH.fullmatch(name) is None, "A branch name has small letters, digits, dots and hyphens."),
        (name in project.branches, f"There is already a branch {name}."),
        (source not in project.branches, "Choose the branch to start from."),
    )
    state.add_branch(project, name, source)
    state.flash(f"Branch {name} was created.")
    return f"/{project.path}?branch={name}"


@logged_in
@form("code/fork.html")
def fork(request: Request) -> Filling:
    """Show the form for a fork, or make it."""
    state, project = session(request), known_project(request)
    groups = [group for group in (ME, *state.data.groups) if group != project.group]
    sent = yield show({"name": project.name, "group": groups[0]}, project=project, groups=groups)
    refuse_if(*name_rules(state, sent))
    copy = replace(project, group=sent["group"], name=sent["name"], forked_from=project.path)
    copy = replace(copy, members={ME: "Owner"}, stars=0, issues={}, requests={})
    state.save(copy)
    state.flash(f"{project.path} was forked to {copy.path}.")
    return f"/{copy.path}"


_P = "/{group}/{project}"
ROUTES = (
    Route(f"{_P}/commits", commit_list),
    Route(f"{_P}/commits/{{sha}}", commit_page),
    Route(f"{_P}/branches", branch_list),
    Route(f"{_P}/branches/new", new_branch, methods=["GET", "POST"]),
    Route(f"{_P}/fork", fork, methods=["GET", "POST"]),
)
"""Routes of this module."""
