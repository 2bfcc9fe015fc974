"""All task templates of the forum, in a fixed order."""

from __future__ import annotations

from sites.forum.long_tasks import LONG
from sites.forum.short_tasks import SHORT
from sites.forum.unseen_tasks import TEST, VALIDATION

TEMPLATES = (*SHORT, *LONG, *VALIDATION, *TEST)
"""Every template; ``TaskTemplate.split`` says what training sees."""
