"""All task templates of the back office, each group from short to long."""

from __future__ import annotations

from sites.admin.tasks import errands, lookups, marketing, orders, questions, records, reports, reviews, sessions
from sites.task_template import templates_of

TEMPLATES = templates_of(questions, lookups, reports, orders, records, marketing, reviews, sessions, errands)
