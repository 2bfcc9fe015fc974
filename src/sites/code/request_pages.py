"""Pages about merge requests: the list, one request, a form to open one, comments, approving, merging, closing.

Owns their route handlers. What cannot be done (merging a draft, say) is told as a message, not an error page.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import logged_in
from sites.code.access import known_project, known_request, session, writable_project
from sites.code.data import MergeRequest, Project
from sites.code.state import CodeState
from sites.forms import Filling, form, refuse_if, show
from sites.paging import listing
from sites.queries import chosen, words_of
from sites.rendering import render, see_other

REQUESTS_PER_PAGE = 5
REQUEST_STATES = ("open", "merged", "closed", "all")


def request_list(request: Request) -> Response:
    """Show a project's merge requests: open ones unless asked otherwise."""
    project, word = known_project(request), words_of(request, "find")
    show = chosen(request, "state", REQUEST_STATES, REQUEST_STATES[0])
    found = [
        item
        for item in sorted(project.requests.values(), key=lambda r: -r.number)
        if show in ("all", item.state) and word in item.title.lower()
    ]
    context: dict[str, Any] = {"show": show, "states": REQUEST_STATES, "word": word}
    requests = listing(request, found, REQUESTS_PER_PAGE)
    return render(request, "code/requests.html", project=project, requests=requests, **context)


def request_page(request: Request) -> Response:
    """Show one merge request with its comments."""
    project = known_project(request)
    return render(request, "code/request.html", project=project, item=known_request(request, project), errors=())


@logged_in
@form("code/new_request.html")
def new_request(request: Request) -> Filling:
    """Show the form for a new merge request, or open it."""
    state, project = session(request), writable_project(request)
    fields = {"source": "", "target": project.default_branch, "title": "", "body": "", "reviewer": ""}
    sent = yield show(fields, project=project)
    ends = {sent["source"], sent["target"]}
    refuse_if(
        (not sent["title"], "A merge request needs a title."),
        (not ends <= set(project.branches) or len(ends) == 1, "Choose two different branches."),
    )
    item = MergeRequest(
        number=max(project.requests, default=0) + 1,
        title=sent["title"],
        body=sent["body"],
        author=state.me or "",
        source=sent["source"],
        target=sent["target"],
        reviewer=sent["reviewer"] if sent["reviewer"] in project.members else "",
    )
    return _saved(state, project, item, f"Merge request !{item.number} was opened.")


@logged_in
@form("code/request.html")
def comment(request: Request) -> Filling:
    """Add a comment to a merge request."""
    state, project = session(request), known_project(request)
    item = known_request(request, project)
    sent = yield show({"body": ""}, project=project, item=item)
    refuse_if((not sent["body"], "Write a comment first."))
    comments = (*item.comments, state.comment(sent["body"]))
    return _saved(state, project, replace(item, comments=comments), "Your comment was added.")


@logged_in
async def approve(request: Request) -> Response:
    """Approve a merge request, or take the approval back."""
    state, project = session(request), writable_project(request)
    item, me = known_request(request, project), state.me or ""
    others = tuple(name for name in item.approved_by if name != me)
    if me in item.approved_by:
        return see_other(_saved(state, project, replace(item, approved_by=others), "You took your approval back."))
    return see_other(_saved(state, project, replace(item, approved_by=(*others, me)), "You approved it."))


@logged_in
async def toggle_draft(request: Request) -> Response:
    """Mark a draft as ready, or the other way round."""
    project = writable_project(request)
    item = known_request(request, project)
    text = "It is ready now." if item.draft else "It is a draft now."
    return see_other(_saved(session(request), project, replace(item, draft=not item.draft), text))


@logged_in
@form("code/request.html")
def merge(request: Request) -> Filling:
    """Merge an open merge request that is no draft."""
    state, project = session(request), writable_project(request)
    item = known_request(request, project)
    yield show(project=project, item=item)
    ready = item.state == "open" and not item.draft and {item.source, item.target} <= set(project.branches)
    refuse_if((not ready, "It cannot be merged: it must be open, ready and have its branches."))
    state.merge(project, item)
    state.flash(f"Merge request !{item.number} was merged.")
    return _path(project, item)


@logged_in
@form("code/request.html")
def close(request: Request) -> Filling:
    """Close an open merge request, open a closed one."""
    project = writable_project(request)
    item = known_request(request, project)
    yield show(project=project, item=item)
    refuse_if((item.state == "merged", "It was merged already."))
    after = replace(item, state="closed" if item.state == "open" else "open")
    return _saved(session(request), project, after, f"Merge request !{item.number} is {after.state}.")


def _saved(state: CodeState, project: Project, item: MergeRequest, text: str) -> str:
    state.save_request(project, item)
    state.flash(text)
    return _path(project, item)


def _path(project: Project, item: MergeRequest) -> str:
    return f"/{project.path}/merge_requests/{item.number}"


_P = "/{group}/{project}/merge_requests"
ROUTES = (
    Route(_P, request_list),
    Route(f"{_P}/new", new_request, methods=["GET", "POST"]),
    Route(f"{_P}/{{number:int}}", request_page),
    *(
        Route(f"{_P}/{{number:int}}/{name}", handler, methods=["POST"])
        for name, handler in (
            ("comment", comment),
            ("approve", approve),
            ("draft", toggle_draft),
            ("merge", merge),
            ("close", close),
        )
    ),
)
"""Routes of this module."""
