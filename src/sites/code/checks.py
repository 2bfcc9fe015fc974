"""What the code host's tasks are judged by, beside what all sites share (``sites.checks``).

Pages are addressed by canonical URLs, and parts of pages by the ids that the templates give them (``#assignee``,
``#due``, ``#role-ana``, ...).
"""

from __future__ import annotations

from urllib.parse import urlencode

from sites.checks import Check, PagesOf, Step, Target
from sites.code.data import ME

_HOST = PagesOf("code")
at, ends_at, equals, includes = _HOST.at, _HOST.ends_at, _HOST.equals, _HOST.includes


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
    """The agent is on this page with these choices in its query, in this order."""
    return at(f"{path}?*{'*'.join(urlencode({name: value}) for name, value in query.items())}*")


def opening(project: str, page: str, what: str) -> tuple[Step, Step]:
    """Milestones on the way to one of a project's pages."""
    return ("open the project", at(f"/{project}*")), (f"open its {what}", at(f"/{project}/{page}*"))


def finding(project: str, page: str, what: str, found: str) -> tuple[Step, Step, Step]:
    """Milestones on the way to one of a project's issues, requests or milestones, whose path is ``found``."""
    return (*opening(project, page, f"{what}s"), (f"open the {what}", at(f"{found}*")))
