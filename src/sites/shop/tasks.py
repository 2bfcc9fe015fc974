"""All task templates of the shop."""

from __future__ import annotations

from sites.shop import tasks_account, tasks_buying, tasks_catalogue, tasks_wishes, tasks_writing

TEMPLATES = (
    *tasks_catalogue.TEMPLATES,
    *tasks_buying.TEMPLATES,
    *tasks_account.TEMPLATES,
    *tasks_wishes.TEMPLATES,
    *tasks_writing.TEMPLATES,
)
"""Every template, each group from short to long."""
