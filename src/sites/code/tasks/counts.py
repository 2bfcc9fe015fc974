"""Tasks whose answer is a number: commits and issues.

Parameters are drawn anew where a careless choice (another author, label or project of the same name) would give the
same number.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from sites.checks import Evaluation, Milestones, answer, has
from sites.code import sampling, skills
from sites.code.checks import filtered
from sites.code.data import CodeData
from sites.experts import Expert
from sites.skills import click, finish, write
from sites.task_template import TaskTemplate, drawn, one_of, together

_NUMBER = r"(?<!\S)\d{1,2}(?!\S)"


class CommitCount(TaskTemplate, name="code.commit_count", horizon=9):
    intent = "How many commits did {user} make to {project} from {since} until {until}? Answer with a number."
    project: str = drawn(sampling.project)
    user: str = together(sampling.commits, "project")
    since: str
    until: str

    def authors(self, data: CodeData, project: str = "") -> list[str]:
        """Return the authors of the commits that a project, or this one, got between the two days."""
        first, last = date.fromisoformat(self.since), date.fromisoformat(self.until)
        return [c.author for c in data.projects[project or self.project].commits if first <= c.day <= last]

    def fits(self, data: CodeData) -> bool:
        """Whether other authors, other days and projects of the same name give other numbers."""
        authors = self.authors(data)
        others = [authors.count(name) for name in set(authors) - {self.user}]
        ever = sum(commit.author == self.user for commit in data.projects[self.project].commits)
        for there in (self.authors(data, project) for project in sampling.namesakes(data, self.project)):
            others += [there.count(self.user), len(there)]
        return authors.count(self.user) not in (*others, len(authors), ever)

    def evaluation(self, data: CodeData) -> Evaluation:
        return answer(str(self.authors(data).count(self.user)))

    def milestones(self, data: CodeData) -> Milestones:
        commits = f"/{self.project}/commits"
        return (
            *skills.opening(self.project, "commits", "commits"),
            ("choose the author", has("Author", self.user)),
            ("choose author and days", filtered(commits, author=self.user, since=self.since, until=self.until)),
        )

    def expert(self) -> Expert:
        yield from skills.open_project(self.project)
        yield from skills.open_page("Commits")
        yield from skills.pick("Author", self.user)
        yield from write({"From": self.since, "Until": self.until})
        seen = yield from click("Filter", "button")
        yield from finish(skills.number_of("Commits", seen), _NUMBER)


class CountIssues(TaskTemplate, name="code.count_issues", horizon=8, split="validation"):
    intent = "How many {state} issues with the label {label} does the project {project} have? Answer with a number."
    project: str = drawn(sampling.project)
    label: str = drawn(sampling.label, "project")
    state: str = one_of(("open", "closed"))

    def count(self, data: CodeData) -> int:
        issues = data.projects[self.project].issues.values()
        return sum(self.label in issue.labels and issue.state == self.state for issue in issues)

    def fits(self, data: CodeData) -> bool:
        """Whether another label, the other state and projects of the same name give other numbers."""
        projects = [path for path in sampling.namesakes(data, self.project) if self.label in data.projects[path].labels]
        others = [
            *(replace(self, project=path) for path in projects),
            *(replace(self, label=label) for label in data.projects[self.project].labels if label != self.label),
            replace(self, state="closed" if self.state == "open" else "open"),
        ]
        return all(other.count(data) != self.count(data) for other in others)

    def evaluation(self, data: CodeData) -> Evaluation:
        return answer(str(self.count(data)))

    def milestones(self, data: CodeData) -> Milestones:
        return (
            *skills.opening(self.project, "issues", "issues"),
            ("choose the label", has("Label", self.label)),
            ("show the issues", skills.show_issues.reached(self.project, self.state, self.label)),
        )

    def expert(self) -> Expert:
        seen = yield from skills.show_issues(self.project, self.state, self.label, states="open|closed")
        yield from finish(skills.number_of("Issues", seen), _NUMBER)
