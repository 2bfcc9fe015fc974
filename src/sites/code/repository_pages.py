"""Pages about what a project holds: its front page, folders and files.

Owns their route handlers. A folder is a prefix of file paths; it has no record of its own.
"""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import existing, logged_in
from sites.code.access import known_branch, known_project, session, writable_project
from sites.code.data import Files, Project
from sites.code.state import CodeState
from sites.forms import Fields, Filling, form, refuse_if, show
from sites.queries import chosen
from sites.rendering import render

_FILE_PATH = re.compile(r"\.?\w[\w.-]*(/\.?\w[\w.-]*)*")


def project_page(request: Request) -> Response:
    """Show a project: what it is about, its files on one branch, its README."""
    project = known_project(request)
    branch = chosen(request, "branch", project.branches, project.default_branch)
    files = project.branches[branch]
    context: dict[str, Any] = {"branch": branch, "entries": entries(files, ""), "readme": files.get("README.md", "")}
    return render(request, "code/project.html", project=project, **context)


def folder_page(request: Request) -> Response:
    """Show the files of a folder."""
    project = known_project(request)
    branch, folder = known_branch(request, project), request.path_params["path"].strip("/")
    found = existing(entries(project.branches[branch], f"{folder}/") or None)
    return render(request, "code/folder.html", project=project, branch=branch, folder=folder, entries=found)


def file_page(request: Request) -> Response:
    """Show a file's text."""
    project = known_project(request)
    branch, path = known_branch(request, project), request.path_params["path"]
    text = existing(project.branches[branch].get(path))
    return render(request, "code/file.html", project=project, branch=branch, path=path, text=text)


def entries(files: Files, prefix: str) -> list[tuple[str, str, bool]]:
    """Return (name, path, whether it is a folder) of what lies in a folder, folders first."""
    found = {}
    for path in files:
        if path.startswith(prefix):
            name, slash, _ = path.removeprefix(prefix).partition("/")
            found[name] = (name, prefix + name, bool(slash))
    return sorted(found.values(), key=lambda entry: (not entry[2], entry[0]))


@logged_in
@form("code/new_file.html")
def new_file(request: Request) -> Filling:
    """Show the form for a new file on a branch, or commit it."""
    project = writable_project(request)
    branch = known_branch(request, project)
    sent = yield show({"path": "", "text": "", "message": "Add a file"}, project=project, branch=branch)
    path = sent["path"]
    refuse_if(
        (_FILE_PATH.fullmatch(path) is None, "A file name has letters, digits, dots and hyphens."),
        (path in project.branches[branch], f"There is already a file {path} on {branch}."),
    )
    return _commit(session(request), project, branch, path, sent)


@logged_in
@form("code/edit_file.html")
def edit_file(request: Request) -> Filling:
    """Show the form for a file's text, or commit the change."""
    project = writable_project(request)
    branch, path = known_branch(request, project), request.path_params["path"]
    fields = {"text": existing(project.branches[branch].get(path)), "message": f"Change {path}"}
    sent = yield show(fields, project=project, branch=branch, path=path)
    return _commit(session(request), project, branch, path, sent)


def _commit(state: CodeState, project: Project, branch: str, path: str, sent: Fields) -> str:
    state.commit_files(project, branch, {path: sent["text"]}, sent["message"] or "Change a file")
    state.flash(f"Your changes were committed to {branch}.")
    return f"/{project.path}/file/{branch}/{path}"


_P = "/{group}/{project}"
ROUTES = (
    Route(f"{_P}", project_page),
    Route(f"{_P}/folder/{{branch}}/{{path:path}}", folder_page),
    Route(f"{_P}/file/{{branch}}/{{path:path}}", file_page),
    Route(f"{_P}/new/{{branch}}", new_file, methods=["GET", "POST"]),
    Route(f"{_P}/edit/{{branch}}/{{path:path}}", edit_file, methods=["GET", "POST"]),
)
"""Routes of this module; they come after those whose paths have two fixed parts."""
