"""One session's view of the code host: its own projects, stars, to-dos and profile over the shared base data.

Owns every change that a visitor can make, as an overlay whose creation costs microseconds: a changed
project is a new record that hides the base one. Invariants: the base data is never written to; a
session sees no other session's changes; time stands still, so whatever is made is dated today.
Methods assume that the page has checked the input and who is logged in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sites.code.data import ME, TODAY, CodeData, Comment, Commit, Files, Issue, MergeRequest, Project, Todo, User
from sites.overlay import Overlay
from sites.site import State

PROJECT_SORTS = ("Name", "Most stars", "Fewest stars", "Last updated")
_MANAGERS = ("Maintainer", "Owner")
_WRITERS = ("Developer", *_MANAGERS)


class CodeState(State):
    """The overlay of one session; ``me`` is the logged-in user's name or None."""

    def __init__(self, data: CodeData, me: str | None) -> None:
        super().__init__()
        self.data = data
        self.me = me
        self.starred: set[str] = set()
        self.done: set[int] = set()
        self._profile: User | None = None
        self._projects = Overlay(data.projects)
        self._next_sha = 0xA0000000

    # -- people -------------------------------------------------------------------------------

    def user(self, name: str) -> User | None:
        """Return the user of this name as the profile is now."""
        return self._profile if self._profile and name == ME else self.data.users.get(name)

    def change_profile(self, **fields: str) -> None:
        """Set fields of one's own profile."""
        self._profile = replace(self._profile or self.data.users[ME], **fields)

    def todos(self, kind: str = "", author: str = "", done: bool = False) -> list[Todo]:
        """Return the to-do items of this kind and author ("" for any), latest first."""
        found = [todo for todo in self.data.todos if (todo.number in self.done) == done]
        return [t for t in reversed(found) if kind in ("", t.kind) and author in ("", t.author)]

    # -- projects -----------------------------------------------------------------------------

    def project(self, path: str) -> Project | None:
        """Return the project as it is now, None when there is none, it was deleted or may not be seen."""
        project = self._projects.get(path)
        return project if project and self._may_see(project) else None

    def projects(self, *, group: str = "", sort: str = "Name") -> list[Project]:
        """Return the projects that may be seen, of one group or all, in one of ``PROJECT_SORTS``."""
        found = [p for p in self._projects.all() if self._may_see(p) and group in ("", p.group)]
        found.sort(key=lambda p: p.path)
        if sort in ("Most stars", "Fewest stars"):
            return sorted(found, key=self.stars, reverse=sort == "Most stars")
        return sorted(found, key=lambda p: p.updated, reverse=True) if sort == "Last updated" else found

    def stars(self, project: Project) -> int:
        """Return the project's stars with the session's own."""
        return project.stars + (project.path in self.starred)

    def can_manage(self, project: Project) -> bool:
        """Whether the logged-in user may change settings and members."""
        return self.me is not None and project.members.get(self.me) in _MANAGERS

    def can_write(self, project: Project) -> bool:
        """Whether the logged-in user may change files, issues and merge requests."""
        return self.me is not None and project.members.get(self.me) in _WRITERS

    def save(self, project: Project) -> None:
        """Put a new or changed project in the place of what its path held."""
        self._projects.put(project.path, replace(project, updated=TODAY))

    def change(self, project: Project, **fields: Any) -> None:
        """Change fields of a project."""
        self.save(replace(project, **fields))

    def delete(self, project: Project) -> None:
        """Delete a project with everything in it."""
        self._projects.remove(project.path)
        self.starred.discard(project.path)

    # -- what is in a project -----------------------------------------------------------------

    def commits(self, project: Project, branch: str) -> list[Commit]:
        """Return the commits of a branch, newest first."""
        return [commit for commit in project.commits if commit.branch in ("", branch)]

    def commit_files(self, project: Project, branch: str, changes: Mapping[str, str | None], title: str) -> None:
        """Commit files to a branch; a text of None removes the file."""
        files = {path: text for path, text in {**project.branches[branch], **changes}.items() if text is not None}
        commit = Commit(self._sha(), title, self.me or "", TODAY, branch)
        self.change(
            project,
            branches={**project.branches, branch: dict(sorted(files.items()))},
            commits=(commit, *project.commits),
        )

    def add_branch(self, project: Project, name: str, source: str) -> None:
        """Add a branch with the files and commits of another."""
        copies = tuple(replace(c, branch=name) for c in project.commits if c.branch == source)
        files: Files = project.branches[source]
        self.change(project, branches={**project.branches, name: files}, commits=(*copies, *project.commits))

    def save_issue(self, project: Project, issue: Issue) -> None:
        """Put a new or changed issue into its project."""
        self.change(project, issues={**project.issues, issue.number: issue})

    def save_request(self, project: Project, request: MergeRequest) -> None:
        """Put a new or changed merge request into its project."""
        self.change(project, requests={**project.requests, request.number: request})

    def merge(self, project: Project, request: MergeRequest) -> None:
        """Merge: the target branch gets the source's files and commits."""
        files = {**project.branches[request.target], **project.branches[request.source]}
        moved = tuple(replace(c, branch=request.target) for c in project.commits if c.branch == request.source)
        mark = Commit(
            self._sha(), f"Merge {request.source} into {request.target}", self.me or "", TODAY, request.target
        )
        merged = {**project.requests, request.number: replace(request, state="merged")}
        branches = {**project.branches, request.target: files}
        self.change(project, requests=merged, branches=branches, commits=(mark, *moved, *project.commits))

    def comment(self, body: str) -> Comment:
        """Return a comment of the logged-in user."""
        return Comment(self.me or "", body)

    def _may_see(self, project: Project) -> bool:
        return self.me is not None or project.visibility == "Public"

    def _sha(self) -> str:
        self._next_sha += 0x1111
        return f"{self._next_sha:08x}"
