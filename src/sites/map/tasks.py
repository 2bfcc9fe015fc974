"""All task templates of the map, in a fixed order."""

from __future__ import annotations

from sites.map.tasks_lists import LISTS
from sites.map.tasks_long import LONG
from sites.map.tasks_places import PLACES
from sites.map.tasks_routes import ROUTES
from sites.map.tasks_tours import TOURS

TEMPLATES = (*PLACES, *ROUTES, *LISTS, *LONG, *TOURS)
"""Every template; ``TaskTemplate.split`` says what training sees."""
