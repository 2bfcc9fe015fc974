"""The code host as a ``Site``: routes, base data, state and tasks put together."""

from __future__ import annotations

from sites.access import PASSWORD
from sites.code import (
    history_pages,
    home_pages,
    issue_pages,
    member_pages,
    people_pages,
    planning_pages,
    repository_pages,
    request_pages,
    settings_pages,
)
from sites.code.data import ME, CodeData
from sites.code.generation import build
from sites.code.state import CodeState
from sites.code.tasks import TEMPLATES
from sites.site import Site

_PAGES = (
    people_pages, home_pages, issue_pages, planning_pages, request_pages, member_pages, settings_pages, history_pages,
    repository_pages,
)  # fmt: skip


def new_state(data: CodeData, login: bool) -> CodeState:
    """Return a fresh overlay, logged in as the code host's one account when ``login``."""
    return CodeState(data, ME if login else None)


CODE = Site(
    name="code",
    routes=tuple(route for module in _PAGES for route in module.ROUTES),
    build=build,
    new_state=new_state,
    templates=TEMPLATES,
    account=lambda _: (ME, PASSWORD),
)
"""The code host: projects, files, commits, issues, merge requests, members, settings, to-do items."""
