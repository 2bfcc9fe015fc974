"""All task templates of the shop; the order of a collection is the order in which its templates are drawn."""

from __future__ import annotations

from sites.shop.tasks import account, buying, catalogue, errands_account, errands_buying, scripted, wishes, writing
from sites.task_template import templates_of

TEMPLATES = templates_of(catalogue, buying, account, wishes, writing)
SCRIPTED = templates_of(scripted)
"""On pages with scripts."""
ERRANDS = templates_of(errands_buying, errands_account)
"""Of many parts."""
