"""Task templates that are drawn only where somebody asks for them by name.

Owns the list of collections. Invariant: naming sites alone never draws from a collection, so that what a
recipe played before a collection grew is what it plays afterwards.
"""

from __future__ import annotations

from sites.across.tasks import TEMPLATES as ACROSS
from sites.forum.errands_people import TEMPLATES as FORUM_PEOPLE_ERRANDS
from sites.forum.errands_threads import TEMPLATES as FORUM_THREAD_ERRANDS
from sites.shop.errands_account import TEMPLATES as SHOP_ACCOUNT_ERRANDS
from sites.shop.errands_buying import TEMPLATES as SHOP_BUYING_ERRANDS
from sites.shop.tasks_scripted import TEMPLATES as SHOP_SCRIPTED
from sites.task_template import TaskTemplate

COLLECTIONS: dict[str, tuple[TaskTemplate, ...]] = {
    "across": ACROSS,
    "scripted": SHOP_SCRIPTED,
    "errands": (*SHOP_BUYING_ERRANDS, *SHOP_ACCOUNT_ERRANDS, *FORUM_PEOPLE_ERRANDS, *FORUM_THREAD_ERRANDS),
}
"""Templates by the name that asks for them beside their sites: over several sites, on pages with scripts, of many
parts."""
