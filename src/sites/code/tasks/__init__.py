"""All task templates of the code host; the order of a collection is the order in which its templates are drawn."""

from __future__ import annotations

from sites.code.tasks import building, counts, issues, lists, people, planning, projects, questions
from sites.task_template import templates_of

TEMPLATES = templates_of(lists, people, questions, counts, projects, issues, planning, building)
