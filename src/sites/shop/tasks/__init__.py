"""All task templates of the shop; the order of a collection is the order in which its templates are drawn."""

from __future__ import annotations

from sites.shop.tasks import account, buying, catalogue, errands_account, errands_buying, scripted, wishes, writing

TEMPLATES = (
    *catalogue.TEMPLATES,
    *buying.TEMPLATES,
    *account.TEMPLATES,
    *wishes.TEMPLATES,
    *writing.TEMPLATES,
)
SCRIPTED = scripted.TEMPLATES
"""On pages with scripts."""
ERRANDS = (*errands_buying.TEMPLATES, *errands_account.TEMPLATES)
"""Of many parts."""
