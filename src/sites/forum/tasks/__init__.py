"""All task templates of the forum; the order of a collection is the order in which its templates are drawn."""

from __future__ import annotations

from sites.forum.tasks import errands_people, errands_threads, long, short, unseen

TEMPLATES = (*short.TEMPLATES, *long.TEMPLATES, *unseen.TEMPLATES)
ERRANDS = (*errands_people.TEMPLATES, *errands_threads.TEMPLATES)
"""Of many parts."""
