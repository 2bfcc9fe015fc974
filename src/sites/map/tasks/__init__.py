"""All task templates of the map, in a fixed order."""

from __future__ import annotations

from sites.map.tasks import lists, long, places, routes, tours
from sites.task_template import templates_of

TEMPLATES = templates_of(places, routes, lists, long, tours)
