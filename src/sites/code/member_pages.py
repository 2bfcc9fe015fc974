"""Pages about a project's members: the list, inviting, changing roles, removing.

Owns their route handlers. Removing asks once more on a page of its own.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import existing, logged_in
from sites.code.access import known_project, managed_project, session
from sites.code.data import ROLES, Project
from sites.forms import Filling, form, refuse_if, show
from sites.paging import listing
from sites.rendering import render

MEMBERS_PER_PAGE = 10


def member_list(request: Request) -> Response:
    """Show a project's members and their roles."""
    project = known_project(request)
    members = listing(request, sorted(project.members.items()), MEMBERS_PER_PAGE)
    return render(request, "code/members.html", project=project, members=members)


@logged_in
@form("code/invite.html")
def invite(request: Request) -> Filling:
    """Show the form to invite somebody, or do it."""
    state, project = session(request), managed_project(request)
    sent = yield show({"user": "", "role": ROLES[0]}, project=project, roles=ROLES)
    user, role = sent["user"], sent["role"]
    refuse_if(
        (user not in state.data.users, f"There is no user {user}." if user else "Write a user name."),
        (user in project.members, f"{user} is a member already."),
        (role not in ROLES, "Choose a role."),
    )
    state.change(project, members=dict(sorted({**project.members, user: role}.items())))
    state.flash(f"{user} was invited as {role}.")
    return f"/{project.path}/members"


@logged_in
@form("code/member.html")
def change_role(request: Request) -> Filling:
    """Show the form for a member's role, or change it."""
    state, project = session(request), managed_project(request)
    user = _known_member(request, project)
    role = (yield show({"role": ""}, project=project, user=user, roles=ROLES))["role"]
    if role in ROLES:
        state.change(project, members={**project.members, user: role})
        state.flash(f"{user} is {role} now.")
    return f"/{project.path}/members"


@logged_in
@form("code/remove_member.html")
def remove(request: Request) -> Filling:
    """Ask whether a member shall go, or remove them."""
    state, project = session(request), managed_project(request)
    user = _known_member(request, project)
    yield show(project=project, user=user)
    state.change(project, members={name: role for name, role in project.members.items() if name != user})
    state.flash(f"{user} was removed.")
    return f"/{project.path}/members"


def _known_member(request: Request, project: Project) -> str:
    user: str = request.path_params["user"]
    return existing(user if user in project.members else None)


_P = "/{group}/{project}/members"
ROUTES = (
    Route(_P, member_list),
    Route(f"{_P}/invite", invite, methods=["GET", "POST"]),
    Route(f"{_P}/{{user}}/edit", change_role, methods=["GET", "POST"]),
    Route(f"{_P}/{{user}}/remove", remove, methods=["GET", "POST"]),
)
"""Routes of this module."""
