"""The map as a ``Site``: routes, base data, state and tasks put together."""

from __future__ import annotations

from sites.access import PASSWORD, one_account
from sites.map import list_pages, place_pages, route_pages
from sites.map.data import ME, MapData
from sites.map.places import build
from sites.map.state import MapState
from sites.map.tasks import TEMPLATES
from sites.site import Site


def new_state(data: MapData, login: bool) -> MapState:
    """Return a fresh overlay, logged in as the map's one account when ``login``."""
    return MapState(data, ME if login else None)


MAP = Site(
    name="map",
    routes=(*place_pages.ROUTES, *route_pages.ROUTES, *list_pages.ROUTES, *one_account("map", ME)),
    build=build,
    new_state=new_state,
    templates=TEMPLATES,
    account=lambda _: (ME, PASSWORD),
)
"""The map: places, search, directions, nearby search, lists, tours, notes and error reports."""
