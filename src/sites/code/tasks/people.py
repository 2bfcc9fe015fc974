"""Tasks about people: the status and members."""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, both, has, pages, shows
from sites.code import sampling, skills, words
from sites.code.checks import at, contents, equals, role
from sites.code.data import ME, CodeData
from sites.experts import Expert
from sites.skills import click, write
from sites.task_template import TaskTemplate, drawn, one_of


class SetStatus(TaskTemplate, name="code.set_status", horizon=7):
    intent = "Set your status to {status} and clear it after {time}."
    status: str = one_of(words.STATUSES)
    time: str = one_of(words.CLEAR_AFTER)

    def evaluation(self, data: CodeData) -> Evaluation:
        return pages(*contents(f"/users/{ME}", status=self.status, clear=self.time))

    def milestones(self, data: CodeData) -> Milestones:
        profile = skills.open_user.reached(ME)
        return (
            ("open the own profile", profile),
            ("open the form", at("/status")),
            ("fill it in", both(has("Status", self.status), has("Clear after", self.time))),
            ("save it", both(profile, shows("Your status was set", self.status, self.time))),
        )

    def expert(self) -> Expert:
        yield from skills.open_user(ME)
        yield from click("Set status", "link")
        yield from write({"Status": self.status})
        yield from skills.pick("Clear after", self.time)
        yield from click("Set status", "button")


class Invite(TaskTemplate, name="code.invite", horizon=9):
    intent = "Invite {user} to the project {project} as {role}."
    project: str = drawn(sampling.managed)
    user: str = drawn(sampling.stranger, "project")
    role: str = drawn(sampling.role)

    def evaluation(self, data: CodeData) -> Evaluation:
        return pages(role(self.project, self.user, self.role))

    def milestones(self, data: CodeData) -> Milestones:
        return (
            *skills.opening(self.project, "members", "members"),
            ("fill in the form", both(has("User name", self.user), has("Role", self.role))),
            ("invite the user", skills.invite.reached(self.user, self.role)),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.open_page("Members")
        yield from skills.invite(self.user, self.role)


class ChangeRole(TaskTemplate, name="code.change_role", horizon=8, split="validation"):
    intent = "Change the role of {user} in the project {project} to {role}."
    project: str = drawn(sampling.managed)
    user: str = drawn(sampling.lesser_member, "project")
    role: str = drawn(sampling.role)

    def fits(self, data: CodeData) -> bool:
        return data.projects[self.project].members[self.user] != self.role

    def evaluation(self, data: CodeData) -> Evaluation:
        return pages(role(self.project, self.user, self.role))

    def milestones(self, data: CodeData) -> Milestones:
        form = at(f"/{self.project}/members/{self.user}/edit")
        return (
            *skills.opening(self.project, "members", "members"),
            ("choose the role", both(form, has("Role", self.role))),
            ("save it", shows(f"{self.user} is {self.role} now")),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.open_member(self.user)
        yield from skills.pick("Role", self.role)
        yield from click("Save changes", "button")


class RemoveMember(TaskTemplate, name="code.remove_member", horizon=8, split="test"):
    intent = "Remove {user} from the project {project}."
    project: str = drawn(sampling.managed)
    user: str = drawn(sampling.lesser_member, "project")

    def evaluation(self, data: CodeData) -> Evaluation:
        left = len(data.projects[self.project].members) - 1
        gone = role(self.project, self.user, "")
        return pages(gone, equals(f"/{self.project}/members", "#count", f"Members: {left}"))

    def milestones(self, data: CodeData) -> Milestones:
        members = f"/{self.project}/members"
        return (
            *skills.opening(self.project, "members", "members"),
            ("ask to remove the member", at(f"{members}/{self.user}/remove")),
            ("remove the member", both(at(members), shows(f"{self.user} was removed"))),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.open_member(self.user)
        yield from click("Remove from project", "link")
        yield from click("Remove member", "button")
