"""The list of embedded sites. A new site is one import and one entry here."""

from __future__ import annotations

from sites.admin.site import ADMIN
from sites.code.site import CODE
from sites.forum.site import FORUM
from sites.map.site import MAP
from sites.shop.site import SHOP
from sites.site import Site
from sites.wiki.site import WIKI

SITES: dict[str, Site] = {site.name: site for site in (SHOP, FORUM, CODE, MAP, WIKI, ADMIN)}
"""Every embedded site by its name, which is also its host name and its placeholder."""
