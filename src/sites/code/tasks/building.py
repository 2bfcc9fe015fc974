"""Tasks about merge requests, and those that make a project, a fork or a branch and then work on it."""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, both, has, pages, shows
from sites.code import sampling, skills, words
from sites.code.checks import at, commented, contents, equals, includes, next_request_path, role
from sites.code.data import ME, VISIBILITIES, CodeData
from sites.code.tasks.about import AboutRequest
from sites.experts import Expert
from sites.skills import click, write
from sites.task_template import TaskTemplate, drawn, one_of, together


class MergeRequest(AboutRequest, name="code.merge_request", horizon=8):
    intent = "Merge the merge request {title} of the project {project}."

    def evaluation(self, data: CodeData) -> Evaluation:
        return pages(equals(self.path(data), "#state", "merged"))

    def milestones(self, data: CodeData) -> Milestones:
        path = self.path(data)
        merged = both(at(path), skills.merge.reached())
        return *skills.finding(self.project, "merge_requests", "merge request", path), ("merge it", merged)

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.open_request(self.title)
        yield from skills.merge()


class ReviewRequest(AboutRequest, name="code.review_request", horizon=11):
    intent = "Comment on the merge request {title} of {project}: {text} Then approve it and merge it."
    text: str = one_of(words.NEW_COMMENTS)

    def evaluation(self, data: CodeData) -> Evaluation:
        path = self.path(data)
        return pages(commented(path, self.text), *contents(path, approved=ME, state="merged"))

    def milestones(self, data: CodeData) -> Milestones:
        opened = at(self.path(data))
        return (
            ("open the merge request", at(f"{self.path(data)}*")),
            ("comment on it", both(opened, shows(f"{ME}: {self.text}"))),
            ("approve it", both(opened, has("Take approval back"))),
            ("merge it", both(opened, skills.merge.reached())),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.open_request(self.title)
        yield from skills.comment(self.text)
        yield from click("Approve", "button")
        yield from skills.merge()


class ForkAndInvite(TaskTemplate, name="code.fork_and_invite", horizon=16):
    intent = (
        "Fork the project {project} to the group {group}, change the visibility of the fork to {visibility} "
        "and invite {user} to it as {role}."
    )
    project: str = drawn(sampling.project)
    group: str = one_of((ME, *words.GROUPS))
    visibility: str = one_of(VISIBILITIES)
    user: str = drawn(sampling.user)
    role: str = drawn(sampling.role)

    @property
    def fork(self) -> str:
        return f"{self.group}/{self.project.split('/')[1]}"

    def fits(self, data: CodeData) -> bool:
        return self.fork not in data.projects and data.projects[self.project].visibility != self.visibility

    def evaluation(self, data: CodeData) -> Evaluation:
        made = contents(f"/{self.fork}", source=f"Forked from {self.project}", visibility=self.visibility)
        return pages(*made, role(self.fork, self.user, self.role))

    def milestones(self, data: CodeData) -> Milestones:
        members, settings = at(f"/{self.fork}/members"), at(f"/{self.fork}/settings")
        return (
            ("choose the group", both(at(f"/{self.project}/fork"), has("Group", self.group))),
            ("make the fork", skills.open_project.reached(self.fork)),
            ("change its visibility", both(settings, shows("Your changes were saved"))),
            ("invite the user", both(members, skills.invite.reached(self.user, self.role))),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from click("Fork", "link")
        yield from skills.pick("Group", self.group)
        yield from click("Fork project", "button")
        yield from skills.change_setting("General", "Visibility", self.visibility)
        yield from skills.open_page("Members")
        yield from skills.invite(self.user, self.role)


class StartProject(TaskTemplate, name="code.start_project", horizon=21):
    intent = (
        "Create the {visibility} project {name} in the group {group} with the license {license}, "
        "add the file {file} with the text {text}, and invite {first} as {first_role} and {second} as {second_role}."
    )
    name_: str = one_of(words.NEW_PROJECTS)
    group: str = one_of(tuple(words.GROUPS))
    visibility: str = one_of(VISIBILITIES)
    license: str = one_of(tuple(words.LICENSES))
    file: str = one_of(words.NEW_FILES)
    text: str = one_of(words.FILE_TEXTS)
    first: str = together(sampling.two_users)
    second: str
    first_role: str = drawn(sampling.role)
    second_role: str = drawn(sampling.role)

    @property
    def path(self) -> str:
        return f"{self.group}/{self.name_}"

    def evaluation(self, data: CodeData) -> Evaluation:
        files = f"/{self.path}/file/main"
        return pages(
            equals(f"/{self.path}", "#visibility", self.visibility),
            equals(f"{files}/LICENSE", "#text", words.LICENSES[self.license]),
            equals(f"{files}/{self.file}", "#text", self.text),
            role(self.path, self.first, self.first_role),
            role(self.path, self.second, self.second_role),
        )

    def milestones(self, data: CodeData) -> Milestones:
        members = at(f"/{self.path}/members")
        return (
            ("create the project", skills.open_project.reached(self.path)),
            ("add the file", both(at(f"/{self.path}/file/main/{self.file}"), shows(self.text))),
            ("invite the first", both(members, shows(f"{self.first} {self.first_role}"))),
            ("invite the second", both(members, shows(f"{self.second} {self.second_role}"))),
        )

    def expert(self) -> Expert:
        yield from click("New project", "link")
        yield from write({"Project name": self.name_})
        yield from skills.pick("Group", self.group)
        yield from skills.pick("Visibility", self.visibility)
        yield from skills.pick("License", self.license)
        yield from click("Create project", "button")
        yield from skills.add_file(self.file, self.text)
        yield from skills.open_page("Members")
        yield from skills.invite(self.first, self.first_role)
        yield from skills.invite(self.second, self.second_role)


class BranchAndRequest(TaskTemplate, name="code.branch_and_request", horizon=20):
    intent = (
        "In the project {project}, create the branch {branch} from {source}, add the file {file} with the text {text} "
        "to it, and open the merge request {title} from it with the reviewer {user}."
    )
    project: str = drawn(sampling.project)
    user: str = drawn(sampling.colleague, "project")
    branch: str = one_of(words.NEW_BRANCHES)
    source: str = one_of(words.BRANCHES)
    title: str = drawn(sampling.new_title)
    file: str = one_of(words.NEW_FILES)
    text: str = one_of(words.FILE_TEXTS)

    def evaluation(self, data: CodeData) -> Evaluation:
        files, copied = f"/{self.project}/file/{self.branch}", data.projects[self.project].branches[self.source]
        request, branches = next_request_path(data, self.project), f"{self.branch} into main"
        return pages(
            equals(f"{files}/{self.file}", "#text", self.text),
            includes(f"{files}/config.yml", "#text", *copied["config.yml"].splitlines()),
            *contents(request, title=self.title, branches=branches, reviewer=self.user, state="open"),
        )

    def milestones(self, data: CodeData) -> Milestones:
        file = at(f"/{self.project}/file/{self.branch}/{self.file}")
        form = both(has("Source branch", self.branch), has("Title", self.title), has("Reviewer", self.user))
        opened = skills.request_merge.reached(self.branch, self.title, self.user)
        return (
            ("create the branch", at(f"/{self.project}?branch={self.branch}")),
            ("add the file", both(file, shows(self.text))),
            ("fill in the merge request", form),
            ("open it", both(at(next_request_path(data, self.project)), opened)),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.open_page("Branches")
        yield from click("New branch", "link")
        yield from write({"Branch name": self.branch})
        yield from skills.pick("Create from", self.source)
        yield from click("Create branch", "button")
        yield from skills.add_file(self.file, self.text)
        yield from skills.request_merge(self.branch, self.title, self.user)
