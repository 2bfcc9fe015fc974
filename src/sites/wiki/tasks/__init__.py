"""All task templates of the encyclopedia."""

from __future__ import annotations

from sites.task_template import templates_of
from sites.wiki.tasks import reading

TEMPLATES = templates_of(reading)
