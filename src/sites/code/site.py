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
from sites.code.data import ME
from sites.code.generation import build
from sites.code.state import CodeState
from sites.code.tasks import TEMPLATES
from sites.site import Site, routes_of

CODE = Site(
    name="code",
    routes=routes_of(
        people_pages,
        home_pages,
        issue_pages,
        planning_pages,
        request_pages,
        member_pages,
        settings_pages,
        history_pages,
        repository_pages,
    ),
    build=build,
    new_state=lambda data, login: CodeState(data, ME if login else None),
    templates=TEMPLATES,
    account=lambda _: (ME, PASSWORD),
)
"""The code host: projects, files, commits, issues, merge requests, members, settings, to-do items."""
