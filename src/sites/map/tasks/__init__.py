"""All task templates of the map, in a fixed order."""

from __future__ import annotations

from sites.map.tasks import lists, long, places, routes, tours

TEMPLATES = (*places.TEMPLATES, *routes.TEMPLATES, *lists.TEMPLATES, *long.TEMPLATES, *tours.TEMPLATES)
