"""The code host's longest tasks, which make something and then work on it, and those about merge requests.

Owns their instructions, parameters, evaluations, milestones and experts.
"""

from __future__ import annotations

from records.episodes import Task
from sites import checks
from sites.code import checks as c
from sites.code import experts as e
from sites.code import sampling as s
from sites.code import words
from sites.code.data import ME, CodeData
from sites.old_form import Expert, Parameters, TaskTemplate


def _merge(task: Task) -> Expert:
    yield from e.open_project(task.parameters["project"])
    yield from e.open_request(task.parameters["title"])
    yield from e.click("Merge", "button")
    yield from e.finish()


def _review(task: Task) -> Expert:
    yield from e.open_project(task.parameters["project"])
    yield from e.open_request(task.parameters["title"])
    yield from e.comment(task.parameters["text"])
    yield from e.click("Approve", "button")
    yield from e.click("Merge", "button")
    yield from e.finish()


def _fork_and_invite(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    yield from e.click("Fork", "link")
    yield from e.choose("Group", p["group"])
    yield from e.click("Fork project", "button")
    yield from e.open_menu("General")
    yield from e.choose("Visibility", p["visibility"])
    yield from e.click("Save changes", "button", 1)
    yield from e.open_menu("Members")
    yield from e.invite(p["user"], p["role"])
    yield from e.finish()


def _start_project(task: Task) -> Expert:
    p = task.parameters
    yield from e.click("New project", "link")
    yield from e.write("Project name", p["name"])
    yield from e.choose("Group", p["group"])
    yield from e.choose("Visibility", p["visibility"])
    yield from e.choose("License", p["license"])
    yield from e.click("Create project", "button")
    yield from e.add_file(p["file"], p["text"])
    yield from e.open_menu("Members")
    yield from e.invite(p["first"], p["first_role"])
    yield from e.invite(p["second"], p["second_role"])
    yield from e.finish()


def _branch_and_request(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    yield from e.open_menu("Branches")
    yield from e.click("New branch", "link")
    yield from e.write("Branch name", p["branch"])
    yield from e.choose("Create from", p["source"])
    yield from e.click("Create branch", "button")
    yield from e.add_file(p["file"], p["text"])
    yield from e.open_menu("Merge requests")
    yield from e.click("New merge request", "link")
    yield from e.choose("Source branch", p["branch"])
    yield from e.write("Title", p["title"])
    yield from e.choose("Reviewer", p["user"], e.NAMES)
    yield from e.click("Create merge request", "button")
    yield from e.finish()


def _fork(p: Parameters) -> str:
    return f"{p['group']}/{p['project'].split('/')[1]}"


def _new(p: Parameters) -> str:
    return f"{p['group']}/{p['name']}"


def _next_request(p: Parameters, d: CodeData) -> str:
    return f"/{p['project']}/merge_requests/{max(d.projects[p['project']].requests) + 1}"


MERGE = TaskTemplate(
    name="code.merge_request",
    site="code",
    intent="Merge the merge request {title} of the project {project}.",
    sample=s.request_of,
    evaluation=lambda p, d: checks.pages(c.equals(s.request_path(p, d), "#state", "merged")),
    milestones=lambda p, d: checks.milestones(
        *c.finding(p["project"], "merge_requests", "merge request", s.request_path(p, d)),
        ("merge it", checks.both(c.at(s.request_path(p, d)), checks.shows("was merged"))),
    ),
    expert=_merge,
    horizon=8,
)

REVIEW = TaskTemplate(
    name="code.review_request",
    site="code",
    intent="Comment on the merge request {title} of {project}: {text} Then approve it and merge it.",
    sample=s.joined(s.request_of, s.draw(text=s.one_of(words.NEW_COMMENTS))),
    evaluation=lambda p, d: checks.pages(
        c.commented(s.request_path(p, d), p["text"]),
        *c.contents(s.request_path(p, d), approved=ME, state="merged"),
    ),
    milestones=lambda p, d: checks.milestones(
        ("open the merge request", c.at(f"{s.request_path(p, d)}*")),
        ("comment on it", checks.both(c.at(s.request_path(p, d)), checks.shows(f"{ME}: {p['text']}"))),
        ("approve it", checks.both(c.at(s.request_path(p, d)), checks.has("Take approval back"))),
        ("merge it", checks.both(c.at(s.request_path(p, d)), checks.shows("was merged"))),
    ),
    expert=_review,
    horizon=11,
)

FORK_AND_INVITE = TaskTemplate(
    name="code.fork_and_invite",
    site="code",
    intent=(
        "Fork the project {project} to the group {group}, change the visibility of the fork to {visibility} "
        "and invite {user} to it as {role}."
    ),
    sample=s.until(
        s.joined(
            s.draw(project=s.project, group=s.one_of((ME, *words.GROUPS)), visibility=s.visibility),
            s.draw(user=s.user, role=s.role),
        ),
        lambda p, d: _fork(p) not in d.projects and d.projects[p["project"]].visibility != p["visibility"],
    ),
    evaluation=lambda p, d: checks.pages(
        *c.contents(f"/{_fork(p)}", source=f"Forked from {p['project']}", visibility=p["visibility"]),
        c.role(_fork(p), p["user"], p["role"]),
    ),
    milestones=lambda p, d: checks.milestones(
        ("choose the group", checks.both(c.at(f"/{p['project']}/fork"), checks.has("Group", p["group"]))),
        ("make the fork", c.at(f"/{_fork(p)}*")),
        ("change its visibility", checks.both(c.at(f"/{_fork(p)}/settings"), checks.shows("Your changes were saved"))),
        (
            "invite the user",
            checks.both(c.at(f"/{_fork(p)}/members"), checks.shows(f"{p['user']} was invited as {p['role']}")),
        ),
    ),
    expert=_fork_and_invite,
    horizon=16,
)

START_PROJECT = TaskTemplate(
    name="code.start_project",
    site="code",
    intent=(
        "Create the {visibility} project {name} in the group {group} with the license {license}, "
        "add the file {file} with the text {text}, and invite {first} as {first_role} and {second} as {second_role}."
    ),
    sample=s.joined(
        s.draw(name=s.one_of(words.NEW_PROJECTS), group=s.one_of(words.GROUPS), visibility=s.visibility),
        s.draw(license=s.one_of(words.LICENSES), file=s.one_of(words.NEW_FILES), text=s.one_of(words.FILE_TEXTS)),
        s.two_users,
        s.draw(first_role=s.role, second_role=s.role),
    ),
    evaluation=lambda p, d: checks.pages(
        c.equals(f"/{_new(p)}", "#visibility", p["visibility"]),
        c.equals(f"/{_new(p)}/file/main/LICENSE", "#text", words.LICENSES[p["license"]]),
        c.equals(f"/{_new(p)}/file/main/{p['file']}", "#text", p["text"]),
        c.role(_new(p), p["first"], p["first_role"]),
        c.role(_new(p), p["second"], p["second_role"]),
    ),
    milestones=lambda p, d: checks.milestones(
        ("create the project", c.at(f"/{_new(p)}*")),
        ("add the file", checks.both(c.at(f"/{_new(p)}/file/main/{p['file']}"), checks.shows(p["text"]))),
        ("invite the first", checks.both(c.at(f"/{_new(p)}/members"), checks.shows(f"{p['first']} {p['first_role']}"))),
        (
            "invite the second",
            checks.both(c.at(f"/{_new(p)}/members"), checks.shows(f"{p['second']} {p['second_role']}")),
        ),
    ),
    expert=_start_project,
    horizon=21,
)

BRANCH_AND_REQUEST = TaskTemplate(
    name="code.branch_and_request",
    site="code",
    intent=(
        "In the project {project}, create the branch {branch} from {source}, add the file {file} with the text {text} "
        "to it, and open the merge request {title} from it with the reviewer {user}."
    ),
    sample=s.joined(
        s.with_colleague(s.draw(project=s.project)),
        s.draw(branch=s.one_of(words.NEW_BRANCHES), source=s.one_of(words.BRANCHES), title=s.new_title),
        s.draw(file=s.one_of(words.NEW_FILES), text=s.one_of(words.FILE_TEXTS)),
    ),
    evaluation=lambda p, d: checks.pages(
        c.equals(f"/{p['project']}/file/{p['branch']}/{p['file']}", "#text", p["text"]),
        c.includes(
            f"/{p['project']}/file/{p['branch']}/config.yml",
            "#text",
            *tuple(d.projects[p["project"]].branches[p["source"]]["config.yml"].splitlines()),
        ),
        *c.contents(
            _next_request(p, d), title=p["title"], branches=f"{p['branch']} into main", reviewer=p["user"], state="open"
        ),
    ),
    milestones=lambda p, d: checks.milestones(
        ("create the branch", c.at(f"/{p['project']}?branch={p['branch']}")),
        ("add the file", checks.both(c.at(f"/{p['project']}/file/{p['branch']}/{p['file']}"), checks.shows(p["text"]))),
        (
            "fill in the merge request",
            checks.both(
                checks.has("Source branch", p["branch"]),
                checks.has("Title", p["title"]),
                checks.has("Reviewer", p["user"]),
            ),
        ),
        ("open it", checks.both(c.at(_next_request(p, d)), checks.shows("was opened", p["title"], p["user"]))),
    ),
    expert=_branch_and_request,
    horizon=20,
)

LONG = (MERGE, REVIEW, FORK_AND_INVITE, START_PROJECT, BRANCH_AND_REQUEST)
"""Templates about merge requests and about new projects, forks and branches."""
