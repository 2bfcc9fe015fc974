"""The skills of the code host's experts, and the milestones on the way to a project's pages."""

from __future__ import annotations

import re

from records.environment import Element, Observation
from sites.checks import UNANSWERABLE, Check, Step, both, has, shows
from sites.code.checks import at, filtered
from sites.code.data import ME
from sites.code.words import LABELS
from sites.experts import Actions
from sites.skills import any_of, choose, click, search, skill, write

PATHS = r"[a-z]+/[a-z]+"
NAMES = r"[a-z]+"
DAYS = r"\d{4}-\d\d-\d\d"
_OTHERS = ".+"
_PAGES = {
    "Members": ("Manage", "members"),
    "Labels": ("Manage", "labels"),
    "Issues": ("Plan", "issues"),
    "Milestones": ("Plan", "milestones"),
    "Merge requests": ("Code", "merge_requests"),
    "Commits": ("Code", "commits"),
    "Branches": ("Code", "branches"),
    "General": ("Settings", "settings"),
    "Repository": ("Settings", "settings/repository"),
}
"""The menu that holds each page of a project, and the page's path in the project."""


def pick(name: str, option: str) -> Actions:
    """Choose an option of a select; all others that say something are its rivals."""
    return (yield from choose(name, option, _OTHERS))


@skill(lambda project: at(f"/{project}*"))
def open_project(project: str) -> Actions:
    """Find a project by its name, which projects of other groups have too, and open it."""
    yield from search(project)
    return (yield from click(project, "link", PATHS))


@skill(lambda user: at(f"/users/{user}"))
def open_user(user: str) -> Actions:
    """Find a user among those of similar names and open the profile."""
    yield from search(user)
    return (yield from click(user, "link", NAMES))


@skill(lambda page: at(f"/*/*/{_PAGES[page][1]}"))
def open_page(page: str) -> Actions:
    """In a project: open one of its pages by its menu."""
    yield from click(_PAGES[page][0], "button")
    return (yield from click(page, "link"))


def opening(project: str, page: str, what: str) -> tuple[Step, Step]:
    """Milestones on the way to one of a project's pages."""
    return ("open the project", open_project.reached(project)), (f"open its {what}", at(f"/{project}/{page}*"))


def finding(project: str, page: str, what: str, found: str) -> tuple[Step, Step, Step]:
    """Milestones on the way to one of a project's issues, requests or milestones, whose path is ``found``."""
    return (*opening(project, page, f"{what}s"), (f"open the {what}", at(f"{found}*")))


@skill(lambda title: both(at("/*/milestones/*"), shows(title)))
def open_milestone(title: str) -> Actions:
    """In a project: open a milestone."""
    yield from open_page("Milestones")
    return (yield from click(title, "link", r"v\d\.\d"))


@skill(lambda title: both(at("/*/issues/*"), shows(title)))
def open_issue(title: str) -> Actions:
    """In a project: find an issue among those about the same thing and open it."""
    yield from open_page("Issues")
    return (yield from _find("Find issue", title))


@skill(lambda title: both(at("/*/merge_requests/*"), shows(title)))
def open_request(title: str) -> Actions:
    """In a project: find a merge request among those about the same thing and open it."""
    yield from open_page("Merge requests")
    return (yield from _find("Find merge request", title))


def _issues_shown(project: str, state: str = "", label: str = "", assignee: str = "", states: str = "") -> Check:
    return filtered(f"/{project}/issues", state=state, label=label, assignee=assignee)


@skill(_issues_shown)
def show_issues(project: str, state: str = "", label: str = "", assignee: str = "", states: str = _OTHERS) -> Actions:
    """Open a project and list its issues of a state, a label or an assignee; ``states`` are the state's rivals."""
    yield from open_project(project)
    return (yield from filter_issues(state, label, assignee, states))


def filter_issues(state: str = "", label: str = "", assignee: str = "", states: str = _OTHERS) -> Actions:
    """In a project: list its issues of a state, a label or an assignee."""
    yield from open_page("Issues")
    if state:
        yield from choose("State", state, states)
    if label:
        yield from choose("Label", label, any_of(LABELS))
    if assignee:
        yield from choose("Assignee", assignee, NAMES)
    return (yield from click("Filter", "button"))


def listed(seen: Observation) -> list[Element]:
    """Return the links to the items of a filtered list: those after its button, without the page links."""
    elements = list(seen.elements)
    start = next(i for i, e in enumerate(elements) if (e.role, e.name) == ("button", "Filter"))
    return [e for e in elements[start:] if e.role == "link" and e.name not in ("Previous", "Next")]


@skill(lambda title, label="", assignee="", due="": shows("was created", title))
def create_issue(title: str, label: str = "", assignee: str = "", due: str = "") -> Actions:
    """In a project: create an issue."""
    yield from open_page("Issues")
    seen = yield from click("New issue", "link")
    yield from write({"Title": title})
    yield from _fill_in(seen, label, assignee, due=due)
    return (yield from click("Create issue", "button"))


@skill(
    lambda label="", assignee="", milestone="", due="": shows(
        "was saved", *(text for text in (assignee, milestone, due) if text)
    )
)
def edit_issue(label: str = "", assignee: str = "", milestone: str = "", due: str = "") -> Actions:
    """On the page of an issue: give it what is not empty."""
    seen = yield from click("Edit", "link")
    yield from _fill_in(seen, label, assignee, milestone, due)
    return (yield from click("Save changes", "button"))


@skill(lambda text: shows("was added", f"{ME}: {text}"))
def comment(text: str) -> Actions:
    """On the page of an issue or merge request: write a comment."""
    yield from write({"Comment": text})
    return (yield from click("Add comment", "button"))


@skill(lambda label: has(label))
def create_label(label: str) -> Actions:
    """In a project: create a label."""
    yield from open_page("Labels")
    yield from click("New label", "link")
    yield from write({"Title": label})
    return (yield from click("Create label", "button"))


@skill(lambda title, *rest: shows("was created", title))
def create_milestone(title: str, start: str, end: str, note: str = "") -> Actions:
    """In a project: create a milestone."""
    yield from open_page("Milestones")
    yield from click("New milestone", "link")
    described = {"Description": note} if note else {}
    yield from write({"Title": title, **described, "Start date": start, "End date": end})
    return (yield from click("Create milestone", "button"))


@skill(lambda: shows("was merged"))
def merge() -> Actions:
    """On the page of a merge request: merge it."""
    return (yield from click("Merge", "button"))


@skill(lambda branch, title, reviewer: shows("was opened", title, reviewer))
def request_merge(branch: str, title: str, reviewer: str) -> Actions:
    """In a project: open a merge request from a branch."""
    yield from open_page("Merge requests")
    yield from click("New merge request", "link")
    yield from pick("Source branch", branch)
    yield from write({"Title": title})
    yield from choose("Reviewer", reviewer, NAMES)
    return (yield from click("Create merge request", "button"))


@skill(lambda user: at(f"/*/members/{user}/edit"))
def open_member(user: str) -> Actions:
    """In a project: open the form of a member; each has a link of the same name."""
    seen = yield from open_page("Members")
    rows = re.findall(rf"^({NAMES}) \| \w+$", seen.text, re.MULTILINE)
    if user not in rows:
        raise LookupError(f"no member {user} on {seen.url}; there are: {', '.join(rows)}")
    return (yield from click("Edit", "link", nth=rows.index(user)))


@skill(lambda user, role: shows(f"{user} was invited as {role}"))
def invite(user: str, role: str) -> Actions:
    """On the page of members: invite somebody."""
    yield from click("Invite member", "link")
    yield from write({"User name": user})
    yield from pick("Role", role)
    return (yield from click("Invite", "button"))


@skill(lambda name, text: shows("were committed", text))
def add_file(name: str, text: str) -> Actions:
    """On a project's front page: add a file to the branch that is shown."""
    yield from click("New file", "link")
    yield from write({"File name": name, "Content": text})
    return (yield from click("Commit changes", "button"))


@skill(lambda page, field, option: both(has(field, option), shows("Your changes were saved")))
def change_setting(page: str, field: str, option: str) -> Actions:
    """In a project: change a setting whose form is the second of its page."""
    yield from open_page(page)
    yield from pick(field, option)
    return (yield from click("Save changes", "button", nth=1))


@skill(lambda kind, user: filtered("/todos", type=kind, author=user))
def show_todos(kind: str, user: str) -> Actions:
    """List the to-do items of a type from a user."""
    yield from click("To-do list", "link")
    yield from pick("Type", kind)
    yield from pick("Author", user)
    return (yield from click("Filter", "button"))


def number_of(what: str, seen: Observation) -> str:
    """Return the number that a list's page states, such as "Commits: 7"."""
    found = re.search(rf"^{what}: (\d+)$", seen.text, re.MULTILINE)
    if found is None:
        raise LookupError(f"no number of {what} on {seen.url}; is this the list?")
    return found[1]


def fact(name: str, seen: Observation) -> str:
    """Return what a page says after "name: ", and that there is no answer where it says "none" or nothing."""
    found = re.search(rf"^{name}: (.+)$", seen.text, re.MULTILINE)
    return found[1] if found and found[1] != "none" else UNANSWERABLE


def subject(title: str) -> str:
    """Return what a title is about: all but its verb."""
    return title.split(" ", 1)[1]


def _find(field: str, title: str) -> Actions:
    seen = yield from search(subject(title), field)
    return (yield from click(title, "link", any_of(link.name for link in listed(seen))))


def _fill_in(seen: Observation, label: str, assignee: str, milestone: str = "", due: str = "") -> Actions:
    """On the form ``seen`` of an issue: give it what is not empty; labels that are not ticked are rivals."""
    if label:
        free = [e.name for e in seen.elements if e.role == "checkbox" and not e.value]
        seen = yield from click(label, "checkbox", any_of(free))
    if assignee:
        seen = yield from choose("Assignee", assignee, NAMES)
    if milestone:
        seen = yield from pick("Milestone", milestone)
    if due:
        seen = yield from write({"Due date": due})
    return seen
