"""Tasks about projects and files: settings, files, deletion."""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, both, has, pages, shows
from sites.code import sampling, skills, words
from sites.code.checks import at, equals
from sites.code.data import VISIBILITIES, CodeData
from sites.experts import Expert
from sites.skills import any_of, click, write
from sites.task_template import TaskTemplate, drawn, one_of

_FILES = ("LICENSE", "README.md", "config.yml", "docs/guide.md", "src/main.py")


class SetDefaultBranch(TaskTemplate, name="code.set_default_branch", horizon=7):
    intent = "Change the default branch of the project {project} to {branch}."
    project: str = drawn(sampling.managed)
    branch: str = one_of(words.BRANCHES)

    def evaluation(self, data: CodeData) -> Evaluation:
        return pages(equals(f"/{self.project}/branches", "#default", self.branch))

    def milestones(self, data: CodeData) -> Milestones:
        return (
            *skills.opening(self.project, "settings/repository", "repository settings"),
            ("choose the branch", has("Default branch", self.branch)),
            ("save it", skills.change_setting.reached("Repository", "Default branch", self.branch)),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.change_setting("Repository", "Default branch", self.branch)


class SetVisibility(TaskTemplate, name="code.set_visibility", horizon=7):
    intent = "Change the visibility of the project {project} to {visibility}."
    project: str = drawn(sampling.managed)
    visibility: str = one_of(VISIBILITIES)

    def fits(self, data: CodeData) -> bool:
        return data.projects[self.project].visibility != self.visibility

    def evaluation(self, data: CodeData) -> Evaluation:
        return pages(equals(f"/{self.project}", "#visibility", self.visibility))

    def milestones(self, data: CodeData) -> Milestones:
        return (
            *skills.opening(self.project, "settings", "settings"),
            ("choose the visibility", has("Visibility", self.visibility)),
            ("save it", skills.change_setting.reached("General", "Visibility", self.visibility)),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.change_setting("General", "Visibility", self.visibility)


class EditFile(TaskTemplate, name="code.edit_file"):
    intent = "Replace the content of the file {file} in the project {project} with: {text}"
    file: str = one_of(_FILES)
    project: str = drawn(sampling.project)
    text: str = drawn(sampling.new_text)

    @property
    def path(self) -> str:
        return f"/{self.project}/file/main/{self.file}"

    def evaluation(self, data: CodeData) -> Evaluation:
        return pages(equals(self.path, "#text", self.text))

    def milestones(self, data: CodeData) -> Milestones:
        return (
            ("open the file", at(self.path)),
            ("open the form", at(f"/{self.project}/edit/main/{self.file}")),
            ("write the text", both(at(f"/{self.project}/edit/*"), has("Content", self.text))),
            ("commit it", both(at(self.path), shows("were committed", self.text))),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        for name in self.file.split("/"):
            yield from click(name, "link", any_of(_FILES))
        yield from click("Edit file", "link")
        yield from write({"Content": self.text})
        yield from click("Commit changes", "button")

    def steps(self, data: CodeData) -> int:
        return 7 + self.file.count("/")


class AddFile(TaskTemplate, name="code.add_file", horizon=9):
    intent = "Add the file {file} with the text {text} to the branch {branch} of the project {project}."
    file: str = one_of(words.NEW_FILES)
    text: str = drawn(sampling.new_text)
    branch: str = one_of(words.BRANCHES)
    project: str = drawn(sampling.project)

    @property
    def path(self) -> str:
        return f"/{self.project}/file/{self.branch}/{self.file}"

    def evaluation(self, data: CodeData) -> Evaluation:
        return pages(equals(self.path, "#text", self.text))

    def milestones(self, data: CodeData) -> Milestones:
        return (
            ("open the project", skills.open_project.reached(self.project)),
            ("open the form on the branch", at(f"/{self.project}/new/{self.branch}")),
            ("fill it in", both(has("File name", self.file), has("Content", self.text))),
            ("commit it", both(at(self.path), skills.add_file.reached(self.file, self.text))),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.pick("Branch", self.branch)
        yield from click("Switch", "button")
        yield from skills.add_file(self.file, self.text)


class DeleteProject(TaskTemplate, name="code.delete_project", horizon=9):
    intent = "Delete the project {project}."
    project: str = drawn(sampling.managed)

    def evaluation(self, data: CodeData) -> Evaluation:
        return pages(equals(f"/{self.project}", "h1", "Page not found"))

    def milestones(self, data: CodeData) -> Milestones:
        return (
            *skills.opening(self.project, "settings", "settings"),
            ("ask to delete it", at(f"/{self.project}/settings/delete")),
            ("delete it", both(at("/projects"), shows(f"Project {self.project} was deleted"))),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.open_page("General")
        yield from click("Advanced", "button")
        yield from click("Delete project", "link")
        yield from write({"Full name": self.project})
        yield from click("Delete project", "button")
