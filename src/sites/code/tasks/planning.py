"""Tasks about several issues at once, and about milestones.

Each of them is easily left unfinished: an issue that was overlooked, a milestone without its issues.
"""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, both, has, pages, shows
from sites.code import sampling, skills, words
from sites.code.checks import at, contents, equals, next_milestone_path
from sites.code.data import CodeData, Issue
from sites.experts import Expert
from sites.skills import click
from sites.task_template import TaskTemplate, drawn, one_of, together


class CreateMilestone(TaskTemplate, name="code.create_milestone", horizon=11):
    intent = "Create the milestone {title} in {project} from {start} to {end} with the description: {note}"
    project: str = drawn(sampling.project)
    title: str = one_of(words.NEW_MILESTONES)
    note: str = one_of(words.MILESTONE_NOTES)
    start_: str = together(sampling.period)
    end: str

    def evaluation(self, data: CodeData) -> Evaluation:
        path = next_milestone_path(data, self.project)
        return pages(*contents(path, title=self.title, note=self.note, start=self.start_, end=self.end))

    def milestones(self, data: CodeData) -> Milestones:
        named = has("Title", self.title), has("Description", self.note)
        created = skills.create_milestone.reached(self.title, self.start_, self.end, self.note)
        return (
            *skills.opening(self.project, "milestones/new", "form for a new milestone"),
            ("fill it in", both(*named, has("Start date", self.start_), has("End date", self.end))),
            ("create the milestone", both(at(next_milestone_path(data, self.project)), created)),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.create_milestone(self.title, self.start_, self.end, self.note)


class CloseLabelled(TaskTemplate, name="code.close_labelled"):
    intent = "Close all open issues of the project {project} with the label {label}."
    project: str = drawn(sampling.project)
    label: str = drawn(sampling.label, "project")

    def labelled(self, data: CodeData) -> list[Issue]:
        return data.projects[self.project].open_issues(label=self.label)

    def fits(self, data: CodeData) -> bool:
        """Whether there are some, and no other label's list begins with an issue that should be closed."""
        project = data.projects[self.project]
        lists = [project.open_issues(label=label) for label in project.labels if label != self.label]
        label_matters = not any(self.label in issues[0].labels for issues in lists if issues)
        return 2 <= len(self.labelled(data)) <= 5 and label_matters

    def evaluation(self, data: CodeData) -> Evaluation:
        issues, labelled = f"/{self.project}/issues", self.labelled(data)
        left = len(data.projects[self.project].open_issues()) - len(labelled)
        closed = [equals(f"{issues}/{issue.number}", "#state", "closed") for issue in labelled]
        return pages(*closed, equals(issues, "#count", f"Issues: {left}"))

    def milestones(self, data: CodeData) -> Milestones:
        left = f"Open issues with {self.label}: "
        return (
            *skills.opening(self.project, "issues", "issues"),
            ("close one", both(has(self.label), shows("was closed", left))),
            ("close all", both(has(self.label), shows("was closed", f"{left}0"))),
        )

    def expert(self) -> Expert:
        """Close the first of the list, as often as it has items; the label on an issue's page leads back to it."""
        seen = yield from skills.show_issues(self.project, label=self.label)
        for left in reversed(range(len(skills.listed(seen)))):
            yield from click(skills.listed(seen)[0].name, "link")
            seen = yield from click("Close issue", "button")
            if left:
                seen = yield from click(self.label, "link")

    def steps(self, data: CodeData) -> int:
        return 6 + 3 * len(self.labelled(data))


class HandOver(TaskTemplate, name="code.hand_over"):
    intent = "Assign all open issues of {user} in the project {project} to {other}."
    project: str = drawn(sampling.project)
    user: str = drawn(sampling.colleague, "project")
    other: str = drawn(sampling.colleague, "project")

    def assigned(self, data: CodeData, user: str) -> list[Issue]:
        return data.projects[self.project].open_issues(assignee=user)

    def fits(self, data: CodeData) -> bool:
        return self.user != self.other and 2 <= len(self.assigned(data, self.user)) <= 3

    def evaluation(self, data: CodeData) -> Evaluation:
        issues, moved = f"/{self.project}/issues", self.assigned(data, self.user)
        count = len(self.assigned(data, self.other)) + len(moved)
        return pages(
            *(equals(f"{issues}/{issue.number}", "#assignee", self.other) for issue in moved),
            equals(f"{issues}?assignee={self.other}", "#count", f"Issues: {count}"),
        )

    def milestones(self, data: CodeData) -> Milestones:
        left = f"Open issues of {self.user}: "
        return (
            ("open the issues", at(f"/{self.project}/issues*")),
            ("show those of the user", skills.show_issues.reached(self.project, assignee=self.user)),
            ("hand over one", shows("was saved", left)),
            ("hand over all", shows("was saved", f"{left}0")),
        )

    def expert(self) -> Expert:
        """Give the first of the list to the other member, as often as the list has items at first."""
        seen = yield from skills.show_issues(self.project, assignee=self.user)
        for left in reversed(range(len(skills.listed(seen)))):
            yield from click(skills.listed(seen)[0].name, "link")
            yield from skills.edit_issue(assignee=self.other)
            if left:
                seen = yield from skills.filter_issues(assignee=self.user)

    def steps(self, data: CodeData) -> int:
        return 3 + 8 * len(self.assigned(data, self.user))


class PlanRelease(TaskTemplate, name="code.plan_release", horizon=24, split="test"):
    intent = (
        "In the project {project}, create the milestone {title} from {start} to {end} "
        "and put the issues {first} and {second} into it."
    )
    project: str = drawn(sampling.project)
    first: str = together(sampling.two_issues, "project")
    second: str
    title: str = one_of(words.NEW_MILESTONES)
    start_: str = together(sampling.period)
    end: str

    def issues(self, data: CodeData) -> list[str]:
        """Return the paths of both issues."""
        project = data.projects[self.project]
        return [f"/{self.project}/issues/{project.issue(title).number}" for title in (self.first, self.second)]

    def evaluation(self, data: CodeData) -> Evaluation:
        made = contents(next_milestone_path(data, self.project), title=self.title, start=self.start_, end=self.end)
        return pages(*made, *(equals(path, "#milestone", self.title) for path in self.issues(data)))

    def milestones(self, data: CodeData) -> Milestones:
        first, second = self.issues(data)
        created = skills.create_milestone.reached(self.title, self.start_, self.end)
        put_in = skills.edit_issue.reached(milestone=self.title)
        return (
            ("open the form for a new milestone", at(f"/{self.project}/milestones/new")),
            ("create the milestone", both(at(next_milestone_path(data, self.project)), created)),
            ("put the first issue in", both(at(first), put_in)),
            ("put the second issue in", both(at(second), put_in)),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.create_milestone(self.title, self.start_, self.end)
        for title in (self.first, self.second):
            yield from skills.open_issue(title)
            yield from skills.edit_issue(milestone=self.title)
