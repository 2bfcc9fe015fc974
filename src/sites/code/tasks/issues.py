"""Tasks about single issues: listing, creating, editing, commenting, labelling."""

from __future__ import annotations

from sites.checks import Evaluation, Milestones, both, has, pages
from sites.code import sampling, skills, words
from sites.code.checks import at, commented, contents, ends_at, equals, next_issue_path
from sites.code.data import CodeData
from sites.code.tasks.about import AboutIssue
from sites.experts import Expert
from sites.task_template import TaskTemplate, drawn, one_of


class ListIssues(TaskTemplate, name="code.list_issues", horizon=8):
    intent = "List the {state} issues of the project {project} with the label {label}."
    project: str = drawn(sampling.project)
    label: str = drawn(sampling.label, "project")
    state: str = one_of(("open", "closed", "all"))

    def evaluation(self, data: CodeData) -> Evaluation:
        return ends_at(f"/{self.project}/issues?state={self.state}&label={self.label}")

    def milestones(self, data: CodeData) -> Milestones:
        return (
            *skills.opening(self.project, "issues", "issues"),
            ("choose the label", both(at(f"/{self.project}/issues*"), has("Label", self.label))),
            ("show the issues", skills.show_issues.reached(self.project, self.state, self.label)),
        )

    def expert(self) -> Expert:
        yield from skills.show_issues(self.project, self.state, self.label)


class CommentIssue(AboutIssue, name="code.comment_issue", horizon=9):
    intent = "Comment on the issue {title} of the project {project}: {text}"
    text: str = one_of(words.NEW_COMMENTS)

    def evaluation(self, data: CodeData) -> Evaluation:
        return pages(commented(self.path(data), self.text))

    def milestones(self, data: CodeData) -> Milestones:
        opened = at(self.path(data))
        return (
            *skills.opening(self.project, "issues", "issues"),
            ("write the comment", both(opened, has("Comment", self.text))),
            ("add it", both(opened, skills.comment.reached(self.text))),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.open_issue(self.title)
        yield from skills.comment(self.text)


class AssignIssue(AboutIssue, name="code.assign_issue", horizon=11):
    intent = "Assign the issue {title} of the project {project} to {user}, due {due}."
    user: str = drawn(sampling.colleague, "project")
    due: str = drawn(sampling.day(5, 60))

    def fits(self, data: CodeData) -> bool:
        return self.issue(data).assignee != self.user and str(self.issue(data).due) != self.due

    def evaluation(self, data: CodeData) -> Evaluation:
        return pages(*contents(self.path(data), assignee=self.user, due=self.due))

    def milestones(self, data: CodeData) -> Milestones:
        path = self.path(data)
        form = both(at(f"{path}/edit"), has("Assignee", self.user), has("Due date", self.due))
        return (
            ("open the project", skills.open_project.reached(self.project)),
            ("open the issue", at(f"{path}*")),
            ("fill in the form", form),
            ("save it", both(at(path), skills.edit_issue.reached(assignee=self.user, due=self.due))),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.open_issue(self.title)
        yield from skills.edit_issue(assignee=self.user, due=self.due)


class CreateIssue(TaskTemplate, name="code.create_issue", horizon=11):
    intent = "Create the issue {title} in {project} with the label {label}, assigned to {user}, due {due}."
    project: str = drawn(sampling.project)
    label: str = drawn(sampling.label, "project")
    user: str = drawn(sampling.colleague, "project")
    title: str = drawn(sampling.new_title)
    due: str = drawn(sampling.day(5, 60))

    def evaluation(self, data: CodeData) -> Evaluation:
        path = next_issue_path(data, self.project)
        return pages(*contents(path, title=self.title, labels=self.label, assignee=self.user, due=self.due))

    def milestones(self, data: CodeData) -> Milestones:
        named = has("Title", self.title), has(self.label, "checked")
        form = both(*named, has("Assignee", self.user), has("Due date", self.due))
        return (
            *skills.opening(self.project, "issues/new", "form for a new issue"),
            ("fill in the form", form),
            (
                "create the issue",
                both(at(next_issue_path(data, self.project)), skills.create_issue.reached(self.title)),
            ),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.create_issue(self.title, self.label, self.user, self.due)


class LabelIssue(AboutIssue, name="code.label_issue", horizon=15):
    intent = "Create the label {label} in the project {project} and give it to the issue {title}."
    label: str = one_of(words.NEW_LABELS)

    def evaluation(self, data: CodeData) -> Evaluation:
        labels = sorted((*self.issue(data).labels, self.label))
        return pages(equals(self.path(data), "#labels", " ".join(labels)))

    def milestones(self, data: CodeData) -> Milestones:
        labels, path = f"/{self.project}/labels", self.path(data)
        return (
            ("open the form for a new label", at(f"{labels}/new")),
            ("create the label", both(at(labels), skills.create_label.reached(self.label))),
            ("tick it", both(at(f"{path}/edit"), has(self.label, "checked"))),
            ("save the issue", both(at(path), has(self.label), skills.edit_issue.reached(self.label))),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.create_label(self.label)
        yield from skills.open_issue(self.title)
        yield from skills.edit_issue(self.label)


class TriageIssue(AboutIssue, name="code.triage_issue", horizon=14, split="test"):
    intent = (
        "Give the issue {title} of {project} the label {label}, the assignee {user} and the milestone {milestone}, "
        "then comment: {text}"
    )
    user: str = drawn(sampling.colleague, "project")
    label: str = one_of(tuple(words.LABELS))
    milestone: str = one_of(words.MILESTONES)
    text: str = one_of(words.NEW_COMMENTS)

    def fits(self, data: CodeData) -> bool:
        issue = self.issue(data)
        new = self.label in data.projects[self.project].labels and self.label not in issue.labels
        return new and self.user != issue.assignee and self.milestone != issue.milestone

    def evaluation(self, data: CodeData) -> Evaluation:
        path, labels = self.path(data), " ".join(sorted((*self.issue(data).labels, self.label)))
        given = contents(path, labels=labels, assignee=self.user, milestone=self.milestone)
        return pages(*given, commented(path, self.text))

    def milestones(self, data: CodeData) -> Milestones:
        path = self.path(data)
        chosen = has(self.label, "checked"), has("Assignee", self.user), has("Milestone", self.milestone)
        saved = skills.edit_issue.reached(self.label, self.user, self.milestone)
        return (
            ("open the issue", at(f"{path}*")),
            ("fill in the form", both(at(f"{path}/edit"), *chosen)),
            ("save it", both(at(path), saved)),
            ("add the comment", both(at(path), skills.comment.reached(self.text))),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.open_issue(self.title)
        yield from skills.edit_issue(self.label, self.user, self.milestone)
        yield from skills.comment(self.text)
