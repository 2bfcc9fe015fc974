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
from sites.paging import listing
from sites.queries import chosen, words_of
from sites.rendering import complaints, form_page, read_form, render, see_other

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
    return _page(request, project, known_request(request, project), [])


def _page(request: Request, project: Project, item: MergeRequest, errors: list[str]) -> Response:
    return form_page(request, "code/request.html", errors, project=project, item=item)


@logged_in
async def new_request(request: Request) -> Response:
    """Show the form for a new merge request, or open it."""
    state, project = session(request), writable_project(request)
    fields = {"source": "", "target": project.default_branch, "title": "", "body": "", "reviewer": ""}
    if request.method == "GET":
        return form_page(request, "code/new_request.html", project=project, fields=fields)
    fields |= await read_form(request)
    ends = {fields["source"], fields["target"]}
    if errors := complaints(
        (not fields["title"], "A merge request needs a title."),
        (not ends <= set(project.branches) or len(ends) == 1, "Choose two different branches."),
    ):
        return form_page(request, "code/new_request.html", errors, project=project, fields=fields)
    item = MergeRequest(
        number=max(project.requests, default=0) + 1,
        title=fields["title"],
        body=fields["body"],
        author=state.me or "",
        source=fields["source"],
        target=fields["target"],
        reviewer=fields["reviewer"] if fields["reviewer"] in project.members else "",
    )
    return _saved(request, project, item, f"Merge request !{item.number} was opened.")


@logged_in
async def comment(request: Request) -> Response:
    """Add a comment to a merge request."""
    project = known_project(request)
    item = known_request(request, project)
    body = (await read_form(request)).get("body", "")
    if not body:
        return _page(request, project, item, ["Write a comment first."])
    comments = (*item.comments, session(request).comment(body))
    return _saved(request, project, replace(item, comments=comments), "Your comment was added.")


@logged_in
async def approve(request: Request) -> Response:
    """Approve a merge request, or take the approval back."""
    state, project = session(request), writable_project(request)
    item, me = known_request(request, project), state.me or ""
    if me in item.approved_by:
        left = tuple(name for name in item.approved_by if name != me)
        return _saved(request, project, replace(item, approved_by=left), "You took your approval back.")
    return _saved(request, project, replace(item, approved_by=(*item.approved_by, me)), "You approved it.")


@logged_in
async def toggle_draft(request: Request) -> Response:
    """Mark a draft as ready, or the other way round."""
    project = writable_project(request)
    item = known_request(request, project)
    text = "It is ready now." if item.draft else "It is a draft now."
    return _saved(request, project, replace(item, draft=not item.draft), text)


@logged_in
async def merge(request: Request) -> Response:
    """Merge an open merge request that is no draft."""
    state, project = session(request), writable_project(request)
    item = known_request(request, project)
    gone = {item.source, item.target} - set(project.branches)
    if item.state != "open" or item.draft or gone:
        return _page(request, project, item, ["It cannot be merged: it must be open, ready and have its branches."])
    state.merge(project, item)
    state.flash(f"Merge request !{item.number} was merged.")
    return see_other(_path(project, item))


@logged_in
async def close(request: Request) -> Response:
    """Close an open merge request, open a closed one."""
    project = writable_project(request)
    item = known_request(request, project)
    if item.state == "merged":
        return _page(request, project, item, ["It was merged already."])
    after = replace(item, state="closed" if item.state == "open" else "open")
    return _saved(request, project, after, f"Merge request !{item.number} is {after.state}.")


def _saved(request: Request, project: Project, item: MergeRequest, text: str) -> Response:
    session(request).save_request(project, item)
    session(request).flash(text)
    return see_other(_path(project, item))


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
