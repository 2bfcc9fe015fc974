"""All task templates over several sites, the collection ``across``: each group from short to long."""

from __future__ import annotations

from sites.across.tasks import code_forum, shop_admin, shop_forum, shop_forum_long, wiki_map
from sites.task_template import templates_of

TEMPLATES = templates_of(shop_forum, shop_forum_long, shop_admin, code_forum, wiki_map)
