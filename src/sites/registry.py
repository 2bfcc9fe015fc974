"""The list of embedded sites. A new site is one import and one entry here."""

from __future__ import annotations

from sites.forum.site import FORUM
from sites.shop.site import SHOP
from sites.site import Site

SITES: dict[str, Site] = {site.name: site for site in (SHOP, FORUM)}
"""Every embedded site by its name, which is also its host name and its placeholder."""
