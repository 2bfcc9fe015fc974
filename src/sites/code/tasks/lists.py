"""Tasks about lists: searching, to-do items, stars."""

from __future__ import annotations

from urllib.parse import urlencode

from sites.checks import Evaluation, Milestones, both, has, pages, shows
from sites.code import sampling, skills
from sites.code.checks import at, ends_at, equals, filtered
from sites.code.data import ME, CodeData, Project, Todo
from sites.code.people_pages import TODO_KINDS, TODOS_PER_PAGE
from sites.code.state import PROJECT_SORTS, CodeState
from sites.code.words import GROUPS
from sites.experts import Expert
from sites.skills import click, search
from sites.task_template import TaskTemplate, drawn, one_of

_ORDERS = {"most starred": "Most stars", "least starred": "Fewest stars"}


class Search(TaskTemplate, name="code.search", horizon=2):
    intent = "Search for {words}."
    words: str = drawn(sampling.search_words)

    @property
    def results(self) -> str:
        return f"/search?{urlencode({'q': self.words})}"

    def evaluation(self, data: CodeData) -> Evaluation:
        return ends_at(self.results)

    def milestones(self, data: CodeData) -> Milestones:
        return (
            ("start on the home page", at("/*")),
            ("see a search box", has("Search", role="searchbox")),
            ("search for something", at("/search*")),
            ("search for the words", at(self.results)),
        )

    def expert(self) -> Expert:
        yield from search(self.words)


class ShowTodos(TaskTemplate, name="code.show_todos", horizon=5):
    intent = "Show the to-do items of the type {kind} from {user}."
    kind: str = one_of(TODO_KINDS)
    user: str = drawn(sampling.todo_author)

    def todos(self, data: CodeData) -> list[Todo]:
        return [todo for todo in data.todos if (todo.author, todo.kind) == (self.user, self.kind)]

    def fits(self, data: CodeData) -> bool:
        return bool(self.todos(data))

    def evaluation(self, data: CodeData) -> Evaluation:
        return ends_at(f"/todos?{urlencode({'type': self.kind, 'author': self.user})}")

    def milestones(self, data: CodeData) -> Milestones:
        opened, kind = at("/todos*"), has("Type", self.kind)
        return (
            ("open the to-do list", opened),
            ("choose the type", both(opened, kind)),
            ("choose the author", both(opened, kind, has("Author", self.user))),
            ("show the items", skills.show_todos.reached(self.kind, self.user)),
        )

    def expert(self) -> Expert:
        yield from skills.show_todos(self.kind, self.user)


class FinishTodos(ShowTodos, name="code.finish_todos"):
    intent = "Mark all to-do items of the type {kind} from {user} as done."

    def fits(self, data: CodeData) -> bool:
        return 2 <= len(self.todos(data)) <= TODOS_PER_PAGE

    def evaluation(self, data: CodeData) -> Evaluation:
        return pages(
            equals(f"/todos?type={self.kind}&author={self.user}", "#count", "Items: 0"),
            equals("/todos", "#count", f"Items: {len(data.todos) - len(self.todos(data))}"),
        )

    def milestones(self, data: CodeData) -> Milestones:
        shown = skills.show_todos.reached(self.kind, self.user)
        return (
            ("open the to-do list", at("/todos*")),
            ("show the items", shown),
            ("finish one", both(shown, shows("was marked as done"))),
            ("finish all", both(at("/todos?*"), shows("was marked as done", "Items: 0"))),
        )

    def expert(self) -> Expert:
        seen = yield from skills.show_todos(self.kind, self.user)
        for _ in [element for element in seen.elements if element.name == "Done"]:
            yield from click("Done", "button")

    def steps(self, data: CodeData) -> int:
        return 5 + len(self.todos(data))


class StarTop(TaskTemplate, name="code.star_top"):
    intent = "Star the first {count} of the {order} projects of the group {group}."
    count: str = one_of("123")
    order: str = one_of(tuple(_ORDERS))
    group: str = one_of((*GROUPS, ME))

    def ranked(self, data: CodeData) -> list[Project]:
        found = [project for project in data.projects.values() if project.group == self.group]
        return sorted(found, key=lambda project: project.stars, reverse=self.order == "most starred")

    def fits(self, data: CodeData) -> bool:
        """Whether the first projects in any other order are not the same ones."""
        count, state = int(self.count), CodeState(data, ME)
        first = [
            {project.path for project in state.projects(group=self.group, sort=sort)[:count]}
            for sort in PROJECT_SORTS
            if sort != _ORDERS[self.order]
        ]
        return {project.path for project in self.ranked(data)[:count]} not in first

    def evaluation(self, data: CodeData) -> Evaluation:
        ranked, count = self.ranked(data), int(self.count)
        starred = [equals(f"/{project.path}", "#star", "Unstar") for project in ranked[:count]]
        return pages(*starred, *(equals(f"/{project.path}", "#star", "Star") for project in ranked[count:]))

    def milestones(self, data: CodeData) -> Milestones:
        opened = at("/projects*")
        return (
            ("open the projects", opened),
            ("choose the group", both(opened, has("Group", self.group))),
            ("show the group in the order", filtered("/projects", group=self.group, sort=_ORDERS[self.order])),
            ("star them", both(opened, shows("You starred", f"Your stars: {self.count}"))),
        )

    def expert(self) -> Expert:
        yield from click("Projects", "link")
        yield from skills.pick("Group", self.group)
        yield from skills.pick("Sort by", _ORDERS[self.order])
        yield from click("Filter", "button")
        for _ in range(int(self.count)):
            yield from click("Star", "button")

    def steps(self, data: CodeData) -> int:
        return 5 + int(self.count)
