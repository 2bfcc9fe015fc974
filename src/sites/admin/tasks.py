"""All task templates of the back office."""

from __future__ import annotations

from sites.admin import (
    tasks_long,
    tasks_lookups,
    tasks_marketing,
    tasks_orders,
    tasks_questions,
    tasks_records,
    tasks_reports,
    tasks_reviews,
    tasks_sessions,
)

TEMPLATES = (
    *tasks_questions.TEMPLATES,
    *tasks_lookups.TEMPLATES,
    *tasks_reports.TEMPLATES,
    *tasks_orders.TEMPLATES,
    *tasks_records.TEMPLATES,
    *tasks_marketing.TEMPLATES,
    *tasks_reviews.TEMPLATES,
    *tasks_sessions.TEMPLATES,
    *tasks_long.TEMPLATES,
)
"""Every template, each group from short to long."""
