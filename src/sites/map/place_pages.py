"""Pages about places: the start page, search, a place, what is near it, one's note and error reports.

Owns their route handlers. Invariants: only a valid form changes the state; every change ends in a redirect
with a flash message; lists are cut into short pages.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import logged_in
from sites.forms import Filling, form, show
from sites.map import picture, words
from sites.map.access import known_place, session
from sites.map.data import Place
from sites.map.search import PER_PAGE, correction, search
from sites.paging import listing
from sites.queries import chosen
from sites.rendering import clean_text, render

WITHIN = {"250 m": 250, "500 m": 500, "1 km": 1000, "2 km": 2000}
"""Choices of the nearby search; the third is chosen unless the visitor chooses."""
DEFAULT_WITHIN = "1 km"
REPORTS_PER_PAGE = 5


async def home(request: Request) -> Response:
    """The map of the region, and its towns."""
    data = session(request).data
    return render(request, "map/home.html", towns=data.towns, kinds=words.KINDS, picture=picture.of_region(data))


async def results(request: Request) -> Response:
    """Places found by words; a mistyped word is asked about."""
    data, query = session(request).data, clean_text(request.query_params.get("q", ""))[:80]
    found = listing(request, search(data, query), PER_PAGE)
    return render(request, "map/search.html", query=query, found=found, meant=correction(data, query))


async def place(request: Request) -> Response:
    """All about a place."""
    return render(request, "map/place.html", errors=(), **_shown(request, known_place(request)))


def _shown(request: Request, place: Place) -> dict[str, Any]:
    state = session(request)
    page = {"place": place, "note": state.notes.get(place.place_id, ""), "picture": picture.around(state.data, place)}
    return show({"list": "", "note": ""}, **page)


async def nearby(request: Request) -> Response:
    """Places around a place, nearest first."""
    centre, data = known_place(request), session(request).data
    kind, within = chosen(request, "kind", words.KINDS, ""), chosen(request, "within", WITHIN, DEFAULT_WITHIN)
    found = listing(request, data.nearby(centre, kind, WITHIN[within]), PER_PAGE)
    page: dict[str, Any] = {"found": found, "kind": kind, "kinds": words.KINDS, "within": within, "choices": WITHIN}
    return render(request, "map/nearby.html", place=centre, **page)


@logged_in
@form("map/place.html")
def save(request: Request) -> Filling:
    """Put a place into one of the user's lists."""
    state, shown = session(request), known_place(request)
    sent = yield _shown(request, shown)
    state.save(shown, sent["list"])
    state.flash(f"Saved to {sent['list']}.")
    return shown.path


@logged_in
@form("map/place.html")
def note(request: Request) -> Filling:
    """Keep a note on a place."""
    state, shown = session(request), known_place(request)
    sent = yield _shown(request, shown)
    state.write_note(shown, sent["note"])
    state.flash("Your note was saved.")
    return shown.path


@logged_in
@form("map/report.html")
def report(request: Request) -> Filling:
    """The form for an error on the map."""
    state, shown = session(request), known_place(request)
    sent = yield show({"problem": "", "details": ""}, place=shown, problems=words.PROBLEMS)
    state.report(shown, sent["problem"], sent["details"])
    state.flash("Thank you for your report.")
    return "/reports"


@logged_in
async def reports(request: Request) -> Response:
    """What the user reported, latest first."""
    found = listing(request, session(request).reports[::-1], REPORTS_PER_PAGE)
    return render(request, "map/reports.html", found=found)


_PLACE = "/place/{place_id:int}"

ROUTES = (
    Route("/", home),
    Route("/search", results),
    Route(_PLACE, place),
    Route(f"{_PLACE}/nearby", nearby),
    Route(f"{_PLACE}/save", save, methods=["POST"]),
    Route(f"{_PLACE}/note", note, methods=["POST"]),
    Route(f"{_PLACE}/report", report, methods=["GET", "POST"]),
    Route("/reports", reports),
)
"""The map's pages about places."""
