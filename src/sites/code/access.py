"""Who may open what: the session of a request, and the things that its path names.

Owns the 404s and the 403s, so that page handlers need not repeat them.
"""

from __future__ import annotations

from typing import cast

from starlette.exceptions import HTTPException
from starlette.requests import Request

from sites.access import existing
from sites.code.data import Issue, MergeRequest, Project, User
from sites.code.state import CodeState


def session(request: Request) -> CodeState:
    """Return the code host's state in this request's session."""
    return cast(CodeState, request.state.session)


def known_user(request: Request) -> User:
    """Return the user that the path names, or raise 404."""
    return existing(session(request).user(request.path_params["user"]))


def known_project(request: Request) -> Project:
    """Return the project that the path names, or raise 404."""
    return existing(session(request).project("{group}/{project}".format(**request.path_params)))


def writable_project(request: Request) -> Project:
    """Return the path's project when the user may write to it, or raise 403."""
    project = known_project(request)
    if not session(request).can_write(project):
        raise HTTPException(403)
    return project


def managed_project(request: Request) -> Project:
    """Return the path's project when the user may manage it, or raise 403."""
    project = known_project(request)
    if not session(request).can_manage(project):
        raise HTTPException(403)
    return project


def known_issue(request: Request, project: Project) -> Issue:
    """Return the issue that the path names, or raise 404."""
    return existing(project.issues.get(request.path_params["number"]))


def known_request(request: Request, project: Project) -> MergeRequest:
    """Return the merge request that the path names, or raise 404."""
    return existing(project.requests.get(request.path_params["number"]))


def known_branch(request: Request, project: Project) -> str:
    """Return the branch that the path names, or raise 404."""
    branch: str = request.path_params["branch"]
    return existing(branch if branch in project.branches else None)
