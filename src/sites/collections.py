"""Task templates that are drawn only where somebody asks for them by name.

Owns the list of collections. Invariant: naming sites alone never draws from a collection, so that what a
recipe played before a collection grew is what it plays afterwards.
"""

from __future__ import annotations

from sites.across.tasks import TEMPLATES as ACROSS
from sites.forum import tasks as forum
from sites.shop import tasks as shop
from sites.task_template import TaskTemplate

COLLECTIONS: dict[str, tuple[type[TaskTemplate], ...]] = {
    "across": ACROSS,
    "scripted": shop.SCRIPTED,
    "errands": (*shop.ERRANDS, *forum.ERRANDS),
}
"""Templates by the name that asks for them beside their sites: over several sites, on pages with scripts, of many
parts."""
