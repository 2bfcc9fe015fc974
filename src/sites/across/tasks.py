"""All task templates over several sites."""

from __future__ import annotations

from sites.across import shop_forum, shop_forum_long

TEMPLATES = (*shop_forum.TEMPLATES, *shop_forum_long.TEMPLATES)
"""The collection ``across`` (see ``sites.collections``), each group from short to long."""
