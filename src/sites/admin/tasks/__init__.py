"""All task templates of the back office, each group from short to long."""

from __future__ import annotations

from sites.admin.tasks import errands, lookups, marketing, orders, questions, records, reports, reviews, sessions

TEMPLATES = (
    *questions.TEMPLATES,
    *lookups.TEMPLATES,
    *reports.TEMPLATES,
    *orders.TEMPLATES,
    *records.TEMPLATES,
    *marketing.TEMPLATES,
    *reviews.TEMPLATES,
    *sessions.TEMPLATES,
    *errands.TEMPLATES,
)
