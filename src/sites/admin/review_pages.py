"""Moderation of reviews: the table, one review, and what is done to several at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.admin.access import admin, known, logged_in
from sites.admin.grid import ALL, CHOOSE, contains, filters_of, grid, passes
from sites.admin.records import Review
from sites.admin.state import AdminState
from sites.admin.words import REVIEW_STATUSES
from sites.forms import Filling, form, show
from sites.rendering import render, see_other

DECISIONS = {"Approve": "Approved", "Reject": "Rejected"}
"""What can be done to reviews, and the status it leads to; they can be deleted too."""
DELETE = "Delete"


@logged_in
async def reviews(request: Request) -> Response:
    """Reviews, the newest first; those that wait for a decision unless the address says otherwise."""
    wanted = filters_of(request, author="", status=REVIEW_STATUSES[0])
    rows = [
        review
        for review in admin(request).reviews.all()[::-1]
        if contains(review.author, wanted["author"]) and passes(review.status, wanted["status"])
    ]
    page: dict[str, Any] = {"statuses": (ALL, *REVIEW_STATUSES), "actions": (CHOOSE, *DECISIONS, DELETE)}
    return render(request, "admin/reviews.html", grid=grid(request, rows, wanted), **page)


@logged_in
async def review(request: Request) -> Response:
    """One review."""
    found = known(admin(request).reviews, request.path_params["number"])
    return render(request, "admin/review.html", review=found)


@logged_in
async def bulk(request: Request) -> Response:
    """Approve or reject the ticked reviews; deleting them asks once more."""
    state, sent = admin(request), await request.form(max_files=0)
    action = str(sent.get("action"))
    chosen = _ticked(state, sent.getlist("review"))
    if not chosen or action not in (*DECISIONS, DELETE):
        state.flash("Select reviews and an action")
        return see_other("/reviews")
    if action == DELETE:
        return see_other(f"/reviews/delete?{urlencode([('review', found.number) for found in chosen])}")
    state.decide(chosen, DECISIONS[action])
    state.flash(f"{DECISIONS[action]} {_so_many(chosen)}")
    return see_other("/reviews")


@logged_in
@form("admin/reviews_delete.html")
def delete(request: Request) -> Filling:
    """Ask once more before reviews are deleted."""
    state = admin(request)
    chosen = _ticked(state, request.query_params.getlist("review"))
    yield show(reviews=chosen)
    for found in chosen:
        state.reviews.remove(found.number)
    state.flash(f"Deleted {_so_many(chosen)}")
    return "/reviews"


def _ticked(state: AdminState, values: Sequence[object]) -> list[Review]:
    numbers = [int(str(value)) for value in values if re.fullmatch(r"\d{1,6}", str(value))]
    return [found for number in numbers if (found := state.reviews.get(number))]


def _so_many(chosen: list[Review]) -> str:
    return f"{len(chosen)} review{'s' if len(chosen) != 1 else ''}"


ROUTES = (
    Route("/reviews", reviews),
    Route("/reviews/bulk", bulk, methods=["POST"]),
    Route("/reviews/delete", delete, methods=["GET", "POST"]),
    Route("/reviews/{number:int}", review),
)
"""Routes of reviews."""
