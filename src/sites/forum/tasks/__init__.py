"""All task templates of the forum; the order of a collection is the order in which its templates are drawn."""

from __future__ import annotations

from sites.forum.tasks import errands_people, errands_threads, long, short, unseen
from sites.task_template import templates_of

TEMPLATES = templates_of(short, long, unseen)
ERRANDS = templates_of(errands_people, errands_threads)
"""Of many parts."""
