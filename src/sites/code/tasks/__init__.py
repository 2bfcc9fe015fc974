"""All task templates of the code host; the order of a collection is the order in which its templates are drawn."""

from __future__ import annotations

from sites.code.tasks import building, counts, issues, lists, people, planning, projects, questions

TEMPLATES = (
    *lists.TEMPLATES,
    *people.TEMPLATES,
    *questions.TEMPLATES,
    *counts.TEMPLATES,
    *projects.TEMPLATES,
    *issues.TEMPLATES,
    *planning.TEMPLATES,
    *building.TEMPLATES,
)
