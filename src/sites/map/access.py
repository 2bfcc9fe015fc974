"""Who may open what on the map: the session of a request, and the things that its path names.

Owns the 404s, so that page handlers need not repeat them.
"""

from __future__ import annotations

from typing import cast

from starlette.requests import Request

from sites.access import existing
from sites.map.data import Place
from sites.map.state import MapState


def session(request: Request) -> MapState:
    """Return the map's state in this request's session."""
    return cast(MapState, request.state.session)


def known_place(request: Request) -> Place:
    """Return the place that the path names, or raise 404."""
    return existing(session(request).data.places.get(request.path_params["place_id"]))


def known_list(request: Request) -> str:
    """Return the name of the list that the path means, or raise 404."""
    return existing(session(request).list_named(request.path_params["slug"]))
