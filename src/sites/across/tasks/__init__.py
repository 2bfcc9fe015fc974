"""All task templates over several sites, the collection ``across``: each group from short to long."""

from __future__ import annotations

from sites.across.tasks import code_forum, shop_admin, shop_forum, shop_forum_long, wiki_map

TEMPLATES = (
    *shop_forum.TEMPLATES,
    *shop_forum_long.TEMPLATES,
    *shop_admin.TEMPLATES,
    *code_forum.TEMPLATES,
    *wiki_map.TEMPLATES,
)
