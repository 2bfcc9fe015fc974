"""Pages that belong to no project: the home page, projects, search, groups, new projects.

Owns their route handlers, and starring, which lists of projects offer too.
"""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import logged_in
from sites.code import words
from sites.code.access import known_project, session
from sites.code.data import ME, TODAY, VISIBILITIES, Project
from sites.code.state import PROJECT_SORTS, CodeState
from sites.forms import Fields, Filling, form, refuse_if, show
from sites.paging import listing
from sites.queries import chosen, words_of
from sites.rendering import read_form, render, see_other

PROJECTS_PER_PAGE = 6
PATH_NAME = re.compile(r"[a-z][a-z0-9-]{1,30}")
PATH_NAME_RULE = "A name has 2 to 31 small letters, digits or hyphens and starts with a letter."


def home(request: Request) -> Response:
    """Show the projects that were changed last."""
    projects = listing(request, session(request).projects(sort="Last updated"), PROJECTS_PER_PAGE)
    return render(request, "code/home.html", projects=projects)


def project_list(request: Request) -> Response:
    """Show all projects, or those of one group, in a chosen order."""
    state = session(request)
    groups = (*state.data.groups, ME)
    group = chosen(request, "group", groups, "")
    sort = chosen(request, "sort", PROJECT_SORTS, PROJECT_SORTS[0])
    projects = listing(request, state.projects(group=group, sort=sort), PROJECTS_PER_PAGE)
    context: dict[str, Any] = {"group": group, "groups": groups, "sort": sort, "sorts": PROJECT_SORTS}
    return render(request, "code/projects.html", here=request.url, projects=projects, **context)


def search(request: Request) -> Response:
    """Find projects and users by a part of their names.

    The group in front of a project's name does not narrow the search: "web/api" finds every api.
    """
    state, query = session(request), words_of(request, "q")
    word = query.split("/")[-1]
    projects = [p for p in state.projects() if word and (word in p.name or word in p.path)]
    users = [name for name in state.data.users if word and word in name]
    found = listing(request, projects, PROJECTS_PER_PAGE)
    return render(request, "code/search.html", projects=found, users=users, query=query)


@logged_in
async def star(request: Request) -> Response:
    """Star a project, or take the star back, and return to the page that asked."""
    state, project = session(request), known_project(request)
    back = (await read_form(request)).get("back", "")
    if project.path in state.starred:
        state.starred.remove(project.path)
        state.flash(f"You took your star from {project.path}.")
    else:
        state.starred.add(project.path)
        state.flash(f"You starred {project.path}.")
    return see_other(f"/projects?{back}" if back else f"/{project.path}")


@logged_in
@form("code/new_project.html")
def new_project(request: Request) -> Filling:
    """Show the form for a new project, or create it."""
    state = session(request)
    fields = {"name": "", "group": ME, "about": "", "visibility": VISIBILITIES[0], "license": ""}
    groups, licenses = (ME, *state.data.groups), tuple(words.LICENSES)
    sent = yield show(fields, groups=groups, visibilities=VISIBILITIES, licenses=licenses)
    refuse_if(*name_rules(state, sent))
    files = {"README.md": f"This is {sent['name']}."}
    if sent["license"] in licenses:
        files["LICENSE"] = words.LICENSES[sent["license"]]
    project = Project(
        group=sent["group"],
        name=sent["name"],
        about=sent["about"],
        visibility=sent["visibility"] if sent["visibility"] in VISIBILITIES else VISIBILITIES[0],
        default_branch="main",
        stars=0,
        updated=TODAY,
        branches={"main": {}},
        commits=(),
        members={ME: "Owner"},
        labels={},
    )
    state.commit_files(project, "main", dict(sorted(files.items())), "First commit")
    state.flash(f"Project {project.path} was created.")
    return f"/{project.path}"


def name_rules(state: CodeState, fields: Fields) -> tuple[tuple[bool, str], ...]:
    """Say what may be wrong with the group and name of a new project."""
    path = f"{fields['group']}/{fields['name']}"
    return (
        (PATH_NAME.fullmatch(fields["name"]) is None, PATH_NAME_RULE),
        (fields["group"] not in (*state.data.groups, ME), "Choose a group."),
        (state.project(path) is not None, f"There is already a project {path}."),
    )


ROUTES = (
    Route("/", home),
    Route("/projects", project_list),
    Route("/projects/new", new_project, methods=["GET", "POST"]),
    Route("/search", search),
    Route("/{group}/{project}/star", star, methods=["POST"]),
)
"""Routes of this module."""
