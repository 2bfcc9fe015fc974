"""Pages of the user's lists: all lists, one list, and a tour over its places.

Owns their route handlers. Invariants: only a valid form changes the state; deleting asks once more; a
tour has two places or more.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.access import logged_in
from sites.forms import Filling, form, show
from sites.map import picture
from sites.map.access import known_list, session
from sites.map.directions import PHRASES, Leg, distance, find_route, minutes, shortest_tour
from sites.map.roads import Mode
from sites.map.state import slug
from sites.rendering import render, see_other

LISTED, SHORTEST = "As listed", "Shortest"


@logged_in
@form("map/lists.html")
def lists(request: Request) -> Filling:
    """Show all lists, and make new ones."""
    state = session(request)
    sent = yield show({"name": ""}, lists={name: (slug(name), len(places)) for name, places in state.lists.items()})
    state.add_list(sent["name"])
    state.flash(f"The list {sent['name']} was made.")
    return "/lists"


@logged_in
async def one_list(request: Request) -> Response:
    """Show a list's places."""
    return render(request, "map/list.html", errors=(), **_shown(request, known_list(request)))


def _shown(request: Request, name: str) -> dict[str, Any]:
    return show({"name": name}, name=name, slug=slug(name), places=session(request).places(name))


@logged_in
async def remove(request: Request) -> Response:
    """Take a place out of a list."""
    state, name = session(request), known_list(request)
    place = state.data.places.get(request.path_params["place_id"])
    if place is not None:
        state.remove(place, name)
        state.flash(f"{place.name} was removed.")
    return see_other(f"/lists/{slug(name)}")


@logged_in
@form("map/list.html", whole=True)
def rename(request: Request) -> Filling:
    """Give a list another name."""
    state, name = session(request), known_list(request)
    sent = yield _shown(request, name)
    state.rename(name, sent["name"])
    state.flash("The list was renamed.")
    return f"/lists/{slug(sent['name'])}"


@logged_in
@form("map/delete.html")
def delete(request: Request) -> Filling:
    """Ask whether a list shall go, then delete it."""
    state, name = session(request), known_list(request)
    yield show(name=name, slug=slug(name))
    state.delete_list(name)
    state.flash(f"The list {name} was deleted.")
    return "/lists"


@logged_in
async def tour(request: Request) -> Response:
    """Plan a tour over a list's places, in the list's order or in the shortest."""
    state, name, query = session(request), known_list(request), request.query_params
    places = state.places(name)
    mode, order = query.get("mode", ""), query.get("order", LISTED)
    page: dict[str, Any] = {"name": name, "slug": slug(name), "mode": mode, "order": order, "route": None}
    page |= {"orders": (LISTED, SHORTEST), "modes": PHRASES, "distance": distance, "minutes": minutes, "picture": None}
    error = ""
    if len(places) < 2:
        error = "A tour needs two places or more."
    elif mode in list(Mode):
        plan = shortest_tour if order == SHORTEST else find_route
        found = plan(state.data, Mode(mode), places)
        if isinstance(found, Leg):
            error = f"There is no way {PHRASES[Mode(mode)]} from {found.start.label} to {found.end.label}."
        else:
            page |= {"route": found, "picture": picture.of_route(state.data, found)}
    elif "mode" in query:
        error = "Choose how to travel."
    return render(request, "map/tour.html", error=error, status_code=422 if error else 200, **page)


_LIST = "/lists/{slug}"

ROUTES = (
    Route("/lists", lists, methods=["GET", "POST"]),
    Route(_LIST, one_list),
    Route(f"{_LIST}/remove/{{place_id:int}}", remove, methods=["POST"]),
    Route(f"{_LIST}/rename", rename, methods=["POST"]),
    Route(f"{_LIST}/delete", delete, methods=["GET", "POST"]),
    Route(f"{_LIST}/tour", tour),
)
"""The map's pages of lists."""
