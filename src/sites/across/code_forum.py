"""Task templates over the code host and the forum: news of a project are told, and threads become issues.

Owns what is read on one site and written on the other.
"""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.across.skills import Data, go_to
from sites.code import checks as code
from sites.code import sampling as projects
from sites.code import skills as coding
from sites.code.data import Milestone
from sites.forum import checks as forum
from sites.forum import sampling as topics
from sites.forum import skills as posting
from sites.old_form import Expert, Parameters, TaskTemplate, noting


def _sample_end(data: Data, rng: random.Random) -> Parameters:
    while True:
        project = projects.project(data["code"], rng)
        milestone = projects.milestone(data["code"], rng, project)
        if data["code"].projects[project].milestone(milestone).end is not None:
            p = {"project": project, "milestone": milestone}
            return {**p, "forum": topics.forum(data["forum"], rng), "title": topics.new_title(data["forum"], rng)}


def _milestone(p: Parameters, data: Data) -> Milestone:
    found: Milestone = data["code"].projects[p["project"]].milestone(p["milestone"])
    return found


def _end(p: Parameters, data: Data) -> str:
    return str(_milestone(p, data).end)


def _post_end(task: Task) -> Expert:
    p = task.parameters
    yield from coding.open_project(p["project"])
    seen = yield from coding.open_milestone(p["milestone"])
    end = coding.fact("Ends", seen)
    yield from noting(end, go_to("forum"))
    yield from posting.submit_thread(p["forum"], p["title"], end)


def _sample_issue(data: Data, rng: random.Random) -> Parameters:
    return {**topics.ranked_by_other(data["forum"], rng), "project": projects.project(data["code"], rng)}


def _thread(p: Parameters, data: Data) -> topics.Thread:
    return data["forum"].first_thread(p["forum"], p["rank"])


def _make_issue(task: Task) -> Expert:
    p = task.parameters
    seen = yield from posting.sort_forum(p["forum"], p["rank"])
    title = posting.thread_links(seen)[0].name
    yield from noting(title, go_to("code"))
    yield from coding.open_project(p["project"])
    yield from coding.create_issue(title)


TEMPLATES = (
    TaskTemplate(
        name="across.post_end",
        site="code",
        also=("forum",),
        intent="When does the milestone {milestone} of the project {project} end? Submit a thread to the forum {forum} "
        "with the title {title} and the date as its text.",
        sample=_sample_end,
        evaluation=lambda p, d: checks.pages(*forum.posted(p["forum"], p["title"], _end(p, d))),
        milestones=lambda p, d: checks.milestones(
            ("open the project", code.at(f"/{p['project']}*")),
            (
                "open the milestone",
                code.at(f"/{p['project']}/milestones/{_milestone(p, d).number}*"),
            ),
            ("fill in the form", forum.filled_in(p["forum"], p["title"], _end(p, d))),
            ("post the thread", posting.submit_thread.reached(p["forum"], p["title"], "")),
        ),
        expert=_post_end,
        horizon=12,
    ),
    TaskTemplate(
        name="across.issue_of_thread",
        site="forum",
        also=("code",),
        intent="Create an issue in the project {project}, titled like the {rank} thread in the forum {forum}.",
        sample=_sample_issue,
        evaluation=lambda p, d: checks.pages(
            *code.contents(code.next_issue_path(d["code"], p["project"]), title=_thread(p, d).title)
        ),
        milestones=lambda p, d: checks.milestones(
            ("sort the forum", posting.sort_forum.reached(p["forum"], p["rank"])),
            *coding.opening(p["project"], "issues/new", "form for a new issue"),
            (
                "create the issue",
                checks.both(code.at(code.next_issue_path(d["code"], p["project"])), checks.shows("was created")),
            ),
        ),
        expert=_make_issue,
        horizon=13,
    ),
)
"""Templates over the code host and the forum."""
