"""The map as a ``Site``: routes, base data, state and tasks put together."""

from __future__ import annotations

from sites.access import PASSWORD, one_account
from sites.map import list_pages, place_pages, route_pages
from sites.map.data import ME
from sites.map.places import build
from sites.map.state import MapState
from sites.map.tasks import TEMPLATES
from sites.site import Site, routes_of

MAP = Site(
    name="map",
    routes=(*routes_of(place_pages, route_pages, list_pages), *one_account("map", ME)),
    build=build,
    new_state=lambda data, login: MapState(data, ME if login else None),
    templates=TEMPLATES,
    account=lambda _: (ME, PASSWORD),
)
"""The map: places, search, directions, nearby search, lists, tours, notes and error reports."""
