"""What the code host's tasks are judged by, beside what all sites share (``sites.checks``).

Pages are addressed by canonical URLs, and parts of pages by the ids that the templates give them (``#assignee``,
``#due``, ``#role-ana``, ...).
"""

from __future__ import annotations

from urllib.parse import urlencode

from sites.checks import Check, PagesOf, Target
from sites.code.data import ME, CodeData

_HOST = PagesOf("code")
at, ends_at, equals, includes = _HOST.at, _HOST.ends_at, _HOST.equals, _HOST.includes


def next_issue_path(data: CodeData, project: str) -> str:
    """Return the path that the project's next issue will have."""
    return f"/{project}/issues/{max(data.projects[project].issues) + 1}"


def next_request_path(data: CodeData, project: str) -> str:
    """Return the path that the project's next merge request will have."""
    return f"/{project}/merge_requests/{max(data.projects[project].requests) + 1}"


def next_milestone_path(data: CodeData, project: str) -> str:
    """Return the path that the project's next milestone will have."""
    return f"/{project}/milestones/{len(data.projects[project].milestones) + 1}"


def contents(path: str, **texts: str) -> tuple[Target, ...]:
    """Expect these texts in the elements of these ids on one page."""
    return tuple(equals(path, f"#{name}", text) for name, text in texts.items())


def commented(path: str, text: str) -> Target:
    """Expect the page's latest comment to be the user's, with this text."""
    return equals(path, "#comments .comment:last-child", f"{ME}: {text}")


def role(project: str, user: str, name: str) -> Target:
    """Expect the user to have this role in the project; "" for who is no member."""
    return equals(f"/{project}/members", f"#role-{user}", name)


def filtered(path: str, **query: str) -> Check:
    """The agent is on this page with these choices in its query, in this order; an empty one is not looked for."""
    return at(f"{path}?*{'*'.join(urlencode({name: value}) for name, value in query.items() if value)}*")
