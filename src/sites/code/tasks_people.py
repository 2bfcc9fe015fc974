"""The code host's tasks about people: the status and members.

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


def _change_role(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    seen = yield from e.open_menu("Members")
    yield from e.open_member(seen, p["user"])
    yield from e.choose("Role", p["role"])
    yield from e.click("Save changes", "button")
    yield from e.finish()


def _remove_member(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    seen = yield from e.open_menu("Members")
    yield from e.open_member(seen, p["user"])
    yield from e.click("Remove from project", "link")
    yield from e.click("Remove member", "button")
    yield from e.finish()


SET_STATUS = TaskTemplate(
    name="code.set_status",
    site="code",
    intent="Set your status to {status} and clear it after {time}.",
    sample=s.draw(status=s.one_of(words.STATUSES), time=s.one_of(words.CLEAR_AFTER)),
    evaluation=lambda p, d: checks.pages(*c.contents(f"/users/{ME}", status=p["status"], clear=p["time"])),
    milestones=lambda p, d: checks.milestones(
        ("open the own profile", c.at(f"/users/{ME}")),
        ("open the form", c.at("/status")),
        ("fill it in", checks.both(checks.has("Status", p["status"]), checks.has("Clear after", p["time"]))),
        ("save it", checks.both(c.at(f"/users/{ME}"), checks.shows("Your status was set", p["status"], p["time"]))),
    ),
    expert=e.script(
        lambda t: e.open_user(ME),
        lambda t: e.click("Set status", "link"),
        lambda t: e.write("Status", t.parameters["status"]),
        lambda t: e.choose("Clear after", t.parameters["time"]),
        lambda t: e.click("Set status", "button"),
    ),
    horizon=7,
)

INVITE = TaskTemplate(
    name="code.invite",
    site="code",
    intent="Invite {user} to the project {project} as {role}.",
    sample=s.joined(s.stranger_of, s.draw(role=s.role)),
    evaluation=lambda p, d: checks.pages(c.role(p["project"], p["user"], p["role"])),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "members", "members"),
        ("fill in the form", checks.both(checks.has("User name", p["user"]), checks.has("Role", p["role"]))),
        ("invite the user", checks.shows(f"{p['user']} was invited as {p['role']}")),
    ),
    expert=e.script(
        lambda t: e.open_project(t.parameters["project"]),
        lambda t: e.open_menu("Members"),
        lambda t: e.invite(t.parameters["user"], t.parameters["role"]),
    ),
    horizon=9,
)

CHANGE_ROLE = TaskTemplate(
    name="code.change_role",
    site="code",
    intent="Change the role of {user} in the project {project} to {role}.",
    sample=s.until(
        s.joined(s.member_of, s.draw(role=s.role)),
        lambda p, d: d.projects[p["project"]].members[p["user"]] != p["role"],
    ),
    evaluation=lambda p, d: checks.pages(c.role(p["project"], p["user"], p["role"])),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "members", "members"),
        (
            "choose the role",
            checks.both(c.at(f"/{p['project']}/members/{p['user']}/edit"), checks.has("Role", p["role"])),
        ),
        ("save it", checks.shows(f"{p['user']} is {p['role']} now")),
    ),
    expert=_change_role,
    horizon=8,
    split="validation",
)

REMOVE_MEMBER = TaskTemplate(
    name="code.remove_member",
    site="code",
    intent="Remove {user} from the project {project}.",
    sample=s.member_of,
    evaluation=lambda p, d: checks.pages(
        c.role(p["project"], p["user"], ""),
        c.equals(f"/{p['project']}/members", "#count", f"Members: {len(d.projects[p['project']].members) - 1}"),
    ),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "members", "members"),
        ("ask to remove the member", c.at(f"/{p['project']}/members/{p['user']}/remove")),
        ("remove the member", checks.both(c.at(f"/{p['project']}/members"), checks.shows(f"{p['user']} was removed"))),
    ),
    expert=_remove_member,
    horizon=8,
    split="test",
)

PEOPLE = (SET_STATUS, INVITE, CHANGE_ROLE, REMOVE_MEMBER)
"""Templates about people."""
