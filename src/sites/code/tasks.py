"""All task templates of the code host, in a fixed order."""

from __future__ import annotations

from sites.code.tasks_counts import COUNTS
from sites.code.tasks_issues import ISSUES
from sites.code.tasks_lists import LISTS
from sites.code.tasks_long import LONG
from sites.code.tasks_people import PEOPLE
from sites.code.tasks_planning import PLANNING
from sites.code.tasks_projects import PROJECTS
from sites.code.tasks_questions import QUESTIONS

TEMPLATES = (*LISTS, *PEOPLE, *QUESTIONS, *COUNTS, *PROJECTS, *ISSUES, *PLANNING, *LONG)
"""Every template; ``TaskTemplate.split`` says what training sees."""
