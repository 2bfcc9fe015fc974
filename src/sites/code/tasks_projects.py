"""The code host's tasks about projects and files: settings, files, deletion.

Owns their instructions, parameters, evaluations, milestones and experts.
"""

from __future__ import annotations

import random

from records.episodes import Task
from sites import checks
from sites.code import checks as c
from sites.code import experts as e
from sites.code import sampling as s
from sites.code import words
from sites.code.data import CodeData
from sites.old_form import Expert, Parameters, TaskTemplate

_FILES = ("LICENSE", "README.md", "config.yml", "docs/guide.md", "src/main.py")


def _set(task: Task, page: str, field: str, option: str) -> Expert:
    """Change a setting whose form is the second of its page."""
    yield from e.open_project(task.parameters["project"])
    yield from e.open_menu(page)
    yield from e.choose(field, option)
    yield from e.click("Save changes", "button", 1)
    yield from e.finish()


def _edit_file(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    for name in p["file"].split("/"):
        yield from e.click(name, "link", rivals=e.one_of(_FILES))
    yield from e.click("Edit file", "link")
    yield from e.write("Content", p["text"])
    yield from e.click("Commit changes", "button")
    yield from e.finish()


def _add_file(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    yield from e.choose("Branch", p["branch"])
    yield from e.click("Switch", "button")
    yield from e.add_file(p["file"], p["text"])
    yield from e.finish()


def _delete(task: Task) -> Expert:
    p = task.parameters
    yield from e.open_project(p["project"])
    yield from e.open_menu("General")
    yield from e.click("Advanced", "button")
    yield from e.click("Delete project", "link")
    yield from e.write("Full name", p["project"])
    yield from e.click("Delete project", "button")
    yield from e.finish()


def _new_text(d: CodeData, rng: random.Random) -> str:
    return f"{rng.choice(words.FILE_TEXTS)}, {rng.choice(words.NEW_PROJECTS)}"


def _file_path(p: Parameters, branch: str = "main") -> str:
    return f"/{p['project']}/file/{branch}/{p['file']}"


SET_DEFAULT_BRANCH = TaskTemplate(
    name="code.set_default_branch",
    site="code",
    intent="Change the default branch of the project {project} to {branch}.",
    sample=s.draw(project=s.managed, branch=s.one_of(words.BRANCHES)),
    evaluation=lambda p, d: checks.pages(
        c.equals(f"/{p['project']}/branches", "#default", p["branch"]),
    ),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "settings/repository", "repository settings"),
        ("choose the branch", checks.has("Default branch", p["branch"])),
        ("save it", checks.both(checks.has("Default branch", p["branch"]), checks.shows("Your changes were saved"))),
    ),
    expert=lambda t: _set(t, "Repository", "Default branch", t.parameters["branch"]),
    horizon=7,
)

SET_VISIBILITY = TaskTemplate(
    name="code.set_visibility",
    site="code",
    intent="Change the visibility of the project {project} to {visibility}.",
    sample=s.until(
        s.draw(project=s.managed, visibility=s.visibility),
        lambda p, d: d.projects[p["project"]].visibility != p["visibility"],
    ),
    evaluation=lambda p, d: checks.pages(c.equals(f"/{p['project']}", "#visibility", p["visibility"])),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "settings", "settings"),
        ("choose the visibility", checks.has("Visibility", p["visibility"])),
        ("save it", checks.both(checks.has("Visibility", p["visibility"]), checks.shows("Your changes were saved"))),
    ),
    expert=lambda t: _set(t, "General", "Visibility", t.parameters["visibility"]),
    horizon=7,
)

EDIT_FILE = TaskTemplate(
    name="code.edit_file",
    site="code",
    intent="Replace the content of the file {file} in the project {project} with: {text}",
    sample=s.draw(file=s.one_of(_FILES), project=s.project, text=_new_text),
    evaluation=lambda p, d: checks.pages(c.equals(_file_path(p), "#text", p["text"])),
    milestones=lambda p, d: checks.milestones(
        ("open the file", c.at(_file_path(p))),
        ("open the form", c.at(f"/{p['project']}/edit/main/{p['file']}")),
        ("write the text", checks.both(c.at(f"/{p['project']}/edit/*"), checks.has("Content", p["text"]))),
        ("commit it", checks.both(c.at(_file_path(p)), checks.shows("were committed", p["text"]))),
    ),
    expert=_edit_file,
    horizon=lambda p, d: 7 + p["file"].count("/"),
)

ADD_FILE = TaskTemplate(
    name="code.add_file",
    site="code",
    intent="Add the file {file} with the text {text} to the branch {branch} of the project {project}.",
    sample=s.draw(file=s.one_of(words.NEW_FILES), text=_new_text, branch=s.one_of(words.BRANCHES), project=s.project),
    evaluation=lambda p, d: checks.pages(c.equals(_file_path(p, p["branch"]), "#text", p["text"])),
    milestones=lambda p, d: checks.milestones(
        ("open the project", c.at(f"/{p['project']}*")),
        ("open the form on the branch", c.at(f"/{p['project']}/new/{p['branch']}")),
        ("fill it in", checks.both(checks.has("File name", p["file"]), checks.has("Content", p["text"]))),
        ("commit it", checks.both(c.at(_file_path(p, p["branch"])), checks.shows("were committed", p["text"]))),
    ),
    expert=_add_file,
    horizon=9,
)

DELETE_PROJECT = TaskTemplate(
    name="code.delete_project",
    site="code",
    intent="Delete the project {project}.",
    sample=s.draw(project=s.managed),
    evaluation=lambda p, d: checks.pages(c.equals(f"/{p['project']}", "h1", "Page not found")),
    milestones=lambda p, d: checks.milestones(
        *c.opening(p["project"], "settings", "settings"),
        ("ask to delete it", c.at(f"/{p['project']}/settings/delete")),
        ("delete it", checks.both(c.at("/projects"), checks.shows(f"Project {p['project']} was deleted"))),
    ),
    expert=_delete,
    horizon=9,
)

PROJECTS = (SET_DEFAULT_BRANCH, SET_VISIBILITY, EDIT_FILE, ADD_FILE, DELETE_PROJECT)
"""Templates about projects and files."""
