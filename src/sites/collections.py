"""Task templates that are drawn only where somebody asks for them by name.

Owns the list of collections. Invariant: naming sites alone never draws from a collection, so that what a
recipe played before a collection grew is what it plays afterwards.
"""

from __future__ import annotations

from sites.across.tasks import TEMPLATES as ACROSS
from sites.shop.tasks_scripted import TEMPLATES as SHOP_SCRIPTED
from sites.task_template import TaskTemplate

COLLECTIONS: dict[str, tuple[TaskTemplate, ...]] = {"across": ACROSS, "scripted": SHOP_SCRIPTED}
"""Templates by the name that asks for them beside their sites: tasks over several sites, and on pages with scripts."""
