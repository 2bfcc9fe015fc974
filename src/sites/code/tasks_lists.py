"""The code host's tasks about lists: searching, to-do items, stars.

Owns their instructions, parameters, evaluations, milestones and experts.
"""

from __future__ import annotations

import random
from urllib.parse import urlencode

from records.episodes import Task
from sites import checks
from sites.code import checks as c
from sites.code import experts as e
from sites.code import sampling as s
from sites.code import words
from sites.code.data import ME, CodeData, Project, Todo
from sites.code.people_pages import TODO_KINDS, TODOS_PER_PAGE
from sites.code.state import PROJECT_SORTS, CodeState
from sites.old_form import Expert, Parameters, TaskTemplate

_ORDERS = {"most starred": "Most stars", "least starred": "Fewest stars"}


def _words(d: CodeData, rng: random.Random) -> str:
    path, name = s.project(d, rng), s.user(d, rng)
    return rng.choice((path.split("/")[1], path, name))


def _search(task: Task) -> Expert:
    yield e.Intent("search", "Search", "searchbox", argument=task.parameters["words"])
    yield from e.finish()


def _todos(p: Parameters, d: CodeData) -> list[Todo]:
    return [todo for todo in d.todos if (todo.author, todo.kind) == (p["user"], p["kind"])]


def _todo_author(d: CodeData, rng: random.Random) -> str:
    return rng.choice(sorted({todo.author for todo in d.todos}))


_DRAW_TODOS = s.draw(kind=s.one_of(TODO_KINDS), user=_todo_author)


def _finish_todos(task: Task) -> Expert:
    yield from e.click("To-do list", "link")
    yield from e.choose("Type", task.parameters["kind"])
    yield from e.choose("Author", task.parameters["user"])
    seen = yield from e.click("Filter", "button")
    for _ in [element for element in seen.elements if element.name == "Done"]:
        yield from e.click("Done", "button")
    yield from e.finish()


def _ranked(p: Parameters, d: CodeData) -> list[Project]:
    found = [project for project in d.projects.values() if project.group == p["group"]]
    return sorted(found, key=lambda project: project.stars, reverse=p["order"] == "most starred")


def _order_matters(p: Parameters, d: CodeData) -> bool:
    """Whether the first projects in any other order are not the same ones."""
    count, state = int(p["count"]), CodeState(d, ME)
    wanted = {project.path for project in _ranked(p, d)[:count]}
    others = [order for order in PROJECT_SORTS if order != _ORDERS[p["order"]]]
    return all({project.path for project in state.projects(group=p["group"], sort=o)[:count]} != wanted for o in others)


def _star_top(task: Task) -> Expert:
    p = task.parameters
    yield from e.click("Projects", "link")
    yield from e.choose("Group", p["group"])
    yield from e.choose("Sort by", _ORDERS[p["order"]])
    yield from e.click("Filter", "button")
    for _ in range(int(p["count"])):
        yield from e.click("Star", "button")
    yield from e.finish()


SEARCH = TaskTemplate(
    name="code.search",
    site="code",
    intent="Search for {words}.",
    sample=s.draw(words=_words),
    evaluation=lambda p, d: c.ends_at(f"/search?{urlencode({'q': p['words']})}"),
    milestones=lambda p, d: checks.milestones(
        ("start on the home page", c.at("/*")),
        ("see a search box", checks.has("Search", role="searchbox")),
        ("search for something", c.at("/search*")),
        ("search for the words", c.at(f"/search?{urlencode({'q': p['words']})}")),
    ),
    expert=_search,
    horizon=2,
)

SHOW_TODOS = TaskTemplate(
    name="code.show_todos",
    site="code",
    intent="Show the to-do items of the type {kind} from {user}.",
    sample=s.until(_DRAW_TODOS, lambda p, d: bool(_todos(p, d))),
    evaluation=lambda p, d: c.ends_at(f"/todos?{urlencode({'type': p['kind'], 'author': p['user']})}"),
    milestones=lambda p, d: checks.milestones(
        ("open the to-do list", c.at("/todos*")),
        ("choose the type", checks.both(c.at("/todos*"), checks.has("Type", p["kind"]))),
        (
            "choose the author",
            checks.both(c.at("/todos*"), checks.has("Type", p["kind"]), checks.has("Author", p["user"])),
        ),
        ("show the items", c.filtered("/todos", type=p["kind"], author=p["user"])),
    ),
    expert=e.script(
        lambda t: e.click("To-do list", "link"),
        lambda t: e.choose("Type", t.parameters["kind"]),
        lambda t: e.choose("Author", t.parameters["user"]),
        lambda t: e.click("Filter", "button"),
    ),
    horizon=5,
)

FINISH_TODOS = TaskTemplate(
    name="code.finish_todos",
    site="code",
    intent="Mark all to-do items of the type {kind} from {user} as done.",
    sample=s.until(_DRAW_TODOS, lambda p, d: 2 <= len(_todos(p, d)) <= TODOS_PER_PAGE),
    evaluation=lambda p, d: checks.pages(
        c.equals(f"/todos?type={p['kind']}&author={p['user']}", "#count", "Items: 0"),
        c.equals("/todos", "#count", f"Items: {len(d.todos) - len(_todos(p, d))}"),
    ),
    milestones=lambda p, d: checks.milestones(
        ("open the to-do list", c.at("/todos*")),
        ("show the items", c.filtered("/todos", type=p["kind"], author=p["user"])),
        (
            "finish one",
            checks.both(c.filtered("/todos", type=p["kind"], author=p["user"]), checks.shows("was marked as done")),
        ),
        ("finish all", checks.both(c.at("/todos?*"), checks.shows("was marked as done", "Items: 0"))),
    ),
    expert=_finish_todos,
    horizon=lambda p, d: 5 + len(_todos(p, d)),
)

STAR_TOP = TaskTemplate(
    name="code.star_top",
    site="code",
    intent="Star the first {count} of the {order} projects of the group {group}.",
    sample=s.until(
        s.draw(count=s.one_of("123"), order=s.one_of(_ORDERS), group=s.one_of((*words.GROUPS, ME))), _order_matters
    ),
    evaluation=lambda p, d: checks.pages(
        *(
            c.equals(f"/{project.path}", "#star", "Unstar" if rank < int(p["count"]) else "Star")
            for rank, project in enumerate(_ranked(p, d))
        )
    ),
    milestones=lambda p, d: checks.milestones(
        ("open the projects", c.at("/projects*")),
        ("choose the group", checks.both(c.at("/projects*"), checks.has("Group", p["group"]))),
        ("show the group in the order", c.filtered("/projects", group=p["group"], sort=_ORDERS[p["order"]])),
        ("star them", checks.both(c.at("/projects*"), checks.shows("You starred", f"Your stars: {p['count']}"))),
    ),
    expert=_star_top,
    horizon=lambda p, d: 5 + int(p["count"]),
)

LISTS = (SEARCH, SHOW_TODOS, FINISH_TODOS, STAR_TOP)
"""Templates about lists."""
