"""Pages of directions: the form, the question which place was meant, and the route.

Owns their route handlers. A form that can be understood leads to the route's own address
(``/route/foot/12-45``), which names the places by number; one that cannot is shown again with what is wrong.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sites.map import picture
from sites.map.access import session
from sites.map.data import MapData, Place
from sites.map.directions import PHRASES, Leg, distance, find_route, minutes, turns
from sites.map.roads import Mode
from sites.paging import listing
from sites.rendering import clean_text, render, see_other

MAX_STOPS = 3
TURNS_PER_PAGE = 10


@dataclass(frozen=True)
class Wish:
    """What the form asks for: names in order of travel (the first and last are always there) and a mode."""

    names: tuple[str, ...] = ("", "")
    mode: str = ""

    @property
    def query(self) -> str:
        """The form's fields as they stand in an address."""
        start, *stops, end = self.names
        return urlencode([("from", start), *(("stop", stop) for stop in stops), ("to", end), ("mode", self.mode)])

    @property
    def labels(self) -> tuple[str, ...]:
        """The fields' labels."""
        return ("From", *(f"Stop {number}" for number in range(1, len(self.names) - 1)), "To")


def route_path(mode: Mode, stops: list[Place]) -> str:
    """Return a route's address on the site."""
    return f"/route/{mode}/{'-'.join(str(stop.place_id) for stop in stops)}"


async def directions(request: Request) -> Response:
    """Show the form, with another stop where asked; or take it."""
    query, data = request.query_params, session(request).data
    stops = [clean_text(stop)[:80] for stop in query.getlist("stop")[:MAX_STOPS]]
    ends = [clean_text(query.get(name, ""))[:80] for name in ("from", "to")]
    wish = Wish((ends[0], *stops, ends[1]), query.get("mode", ""))
    if "add" in query:
        more = [*stops, ""][:MAX_STOPS]
        return _form(request, replace(wish, names=(ends[0], *more, ends[1])), [])
    if "mode" not in query:
        return _form(request, wish, [])
    found = [data.named(name) for name in wish.names]
    if errors := _errors(wish, found):
        return _form(request, wish, errors)
    for index, places in enumerate(found):
        if len(places) > 1:
            return _ask(request, wish, index, places)
    return see_other(route_path(Mode(wish.mode), [places[0] for places in found]))


def _errors(wish: Wish, found: list[list[Place]]) -> list[str]:
    pairs = list(zip(wish.labels, wish.names, found, strict=True))
    errors = [f"{label}: write the name of a place." for label, name, _ in pairs if not name]
    errors += [f"{label}: no place is called {name}." for label, name, places in pairs if name and not places]
    if wish.mode not in list(Mode):
        errors.append("Choose how to travel.")
    # Two fields may hold one name when it has several meanings: the question comes first.
    if not errors and any(one == other and len(one) == 1 for one, other in zip(found, found[1:], strict=False)):
        errors.append("Two stops in a row are the same place.")
    return errors


def _form(request: Request, wish: Wish, errors: list[str]) -> Response:
    page = {"wish": wish, "errors": errors, "modes": PHRASES, "max_stops": MAX_STOPS}
    return render(request, "map/directions.html", status_code=422 if errors else 200, **page)


def _ask(request: Request, wish: Wish, index: int, places: list[Place]) -> Response:
    """Ask which of several places of one name was meant; each answer is the form with that name made clear."""
    answers = []
    for place in places:
        names = (*wish.names[:index], place.label, *wish.names[index + 1 :])
        answers.append((place, f"/directions?{replace(wish, names=names).query}"))
    return render(request, "map/which.html", name=wish.names[index], label=wish.labels[index], answers=answers)


async def route(request: Request) -> Response:
    """Show a route: length and time, each leg, and all turns."""
    data = session(request).data
    mode, stops = _stops(request, data)
    if len(stops) > 2:
        await asyncio.sleep(data.slow_route_s)
    found = find_route(data, mode, stops)
    page: dict[str, Any] = {
        "wish": Wish(tuple(stop.label for stop in stops), mode),
        "modes": PHRASES,
        "max_stops": MAX_STOPS,
        "how": PHRASES[mode],
        "distance": distance,
        "minutes": minutes,
    }
    if isinstance(found, Leg):
        return render(request, "map/no_route.html", leg=found, **page)
    return render(
        request,
        "map/route.html",
        route=found,
        turns=listing(request, [turn for leg in found.legs for turn in turns(data, leg)], TURNS_PER_PAGE),
        picture=picture.of_route(data, found),
        **page,
    )


def _stops(request: Request, data: MapData) -> tuple[Mode, list[Place]]:
    mode, numbers = request.path_params["mode"], request.path_params["stops"].split("-")
    known = all(n.isascii() and n.isdigit() and int(n[:6]) in data.places for n in numbers)
    if mode not in list(Mode) or not known or not 2 <= len(numbers) <= MAX_STOPS + 2:
        raise HTTPException(404)
    return Mode(mode), [data.places[int(n)] for n in numbers]


ROUTES = (
    Route("/directions", directions),
    Route("/route/{mode}/{stops}", route),
)
"""The map's pages of directions."""
