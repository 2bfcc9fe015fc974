"""What the templates about one issue, or one merge request, have in common: which one it is."""

from __future__ import annotations

from sites.code import sampling
from sites.code.data import CodeData, Issue
from sites.task_template import TaskTemplate, drawn, together


class AboutIssue(TaskTemplate):
    project: str = drawn(sampling.project)
    title: str = drawn(sampling.issue, "project")

    def issue(self, data: CodeData) -> Issue:
        return data.projects[self.project].issue(self.title)

    def path(self, data: CodeData) -> str:
        return f"/{self.project}/issues/{self.issue(data).number}"


class AboutRequest(TaskTemplate):
    project: str = together(sampling.request)
    title: str

    def path(self, data: CodeData) -> str:
        return f"/{self.project}/merge_requests/{data.projects[self.project].request(self.title).number}"
