"""Tasks over the code host and the forum: news of a project are told, and threads become issues."""

from __future__ import annotations

import random
from typing import Self

from sites.across.skills import Data, go_to, on
from sites.checks import Evaluation, Milestones, both, pages, shows
from sites.code import checks as code
from sites.code import sampling as projects
from sites.code import skills as coding
from sites.experts import Expert
from sites.forum import checks as forum
from sites.forum import sampling as topics
from sites.forum import skills as posting
from sites.skills import noting
from sites.task_template import TaskTemplate, drawn, together


class PostEnd(TaskTemplate, name="across.post_end", horizon=12):
    sites = ("code", "forum")
    intent = (
        "When does the milestone {milestone} of the project {project} end? Submit a thread to the forum {forum} with "
        "the title {title} and the date as its text."
    )
    project: str
    milestone: str
    forum: str = drawn(on("forum", topics.forum))
    title: str = drawn(on("forum", topics.new_title))

    @classmethod
    def sample(cls, data: Data, rng: random.Random) -> Self:
        while True:
            project = projects.project(data["code"], rng)
            milestone = projects.milestone(data["code"], rng, project)
            if data["code"].projects[project].milestone(milestone).end is not None:
                return cls.draw(data, rng, project=project, milestone=milestone)

    def evaluation(self, data: Data) -> Evaluation:
        end = data["code"].projects[self.project].milestone(self.milestone).end
        return pages(*forum.posted(self.forum, self.title, str(end)))

    def milestones(self, data: Data) -> Milestones:
        found = data["code"].projects[self.project].milestone(self.milestone)
        return (
            ("open the project", code.at(f"/{self.project}*")),
            ("open the milestone", code.at(f"/{self.project}/milestones/{found.number}*")),
            ("fill in the form", forum.filled_in(self.forum, self.title, str(found.end))),
            ("post the thread", posting.submit_thread.reached(self.forum, self.title, "")),
        )

    def expert(self) -> Expert:
        yield from coding.open_project(self.project)
        seen = yield from coding.open_milestone(self.milestone)
        end = coding.fact("Ends", seen)
        yield from noting(end, go_to("forum"))
        yield from posting.submit_thread(self.forum, self.title, end)


class IssueOfThread(TaskTemplate, name="across.issue_of_thread", horizon=13):
    sites = ("forum", "code")
    intent = "Create an issue in the project {project}, titled like the {rank} thread in the forum {forum}."
    forum: str = together(on("forum", topics.ranked_by_other))
    rank: str
    project: str = drawn(on("code", projects.project))

    def evaluation(self, data: Data) -> Evaluation:
        title = data["forum"].first_thread(self.forum, self.rank).title
        return pages(*code.contents(code.next_issue_path(data["code"], self.project), title=title))

    def milestones(self, data: Data) -> Milestones:
        created = both(code.at(code.next_issue_path(data["code"], self.project)), shows("was created"))
        return (
            ("sort the forum", posting.sort_forum.reached(self.forum, self.rank)),
            *coding.opening(self.project, "issues/new", "form for a new issue"),
            ("create the issue", created),
        )

    def expert(self) -> Expert:
        seen = yield from posting.sort_forum(self.forum, self.rank)
        title = posting.thread_links(seen)[0].name
        yield from noting(title, go_to("code"))
        yield from coding.open_project(self.project)
        yield from coding.create_issue(title)
