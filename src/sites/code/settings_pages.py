"""A project's settings: several forms that each have their own button "Save changes", and deletion.

Owns their route handlers. Deleting asks for the project's full name on a page of its own.
"""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import logged_in
from sites.code.access import managed_project, session
from sites.code.data import MERGE_METHODS, VISIBILITIES, Project
from sites.forms import Filling, form, refuse_if, show
from sites.rendering import read_form, render, see_other


@logged_in
async def general(request: Request) -> Response:
    """Show the forms for the description and the visibility, and the way to delete the project."""
    return render(request, "code/settings.html", project=managed_project(request), visibilities=VISIBILITIES)


@logged_in
async def repository(request: Request) -> Response:
    """Show the forms for the default branch and for how requests are merged."""
    return render(request, "code/repository.html", project=managed_project(request), methods=MERGE_METHODS)


@logged_in
async def save(request: Request) -> Response:
    """Save one setting and return to the page that has its form."""
    project, name = managed_project(request), request.path_params["name"]
    value = (await read_form(request)).get(name, "")
    if name not in _PAGES:
        raise HTTPException(404)
    if name != "about" and value not in _choices(project)[name]:
        raise HTTPException(422)
    session(request).change(project, **{name: value})
    session(request).flash("Your changes were saved.")
    return see_other(f"/{project.path}/{_PAGES[name]}")


def _choices(project: Project) -> dict[str, tuple[str, ...]]:
    return {
        "visibility": VISIBILITIES,
        "default_branch": tuple(project.branches),
        "merge_method": MERGE_METHODS,
    }


@logged_in
@form("code/delete.html")
def delete(request: Request) -> Filling:
    """Ask for the project's full name, and delete the project where it is right."""
    state, project = session(request), managed_project(request)
    sent = yield show({"confirm": ""}, project=project)
    refuse_if((sent["confirm"] != project.path, f"Write {project.path} to delete the project."))
    state.delete(project)
    state.flash(f"Project {project.path} was deleted.")
    return "/projects"


_PAGES = {
    "about": "settings",
    "visibility": "settings",
    "default_branch": "settings/repository",
    "merge_method": "settings/repository",
}
"""The settings and the page on which each has its form."""

_P = "/{group}/{project}/settings"
ROUTES = (
    Route(_P, general),
    Route(f"{_P}/repository", repository),
    Route(f"{_P}/delete", delete, methods=["GET", "POST"]),
    Route(f"{_P}/{{name}}", save, methods=["POST"]),
)
"""Routes of this module."""
