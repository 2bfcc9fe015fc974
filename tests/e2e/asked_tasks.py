"""The embedded sites' tasks without a browser, each with a verdict that only an LLM judge can give."""

from __future__ import annotations

from dataclasses import replace

from environments.embedded.kind import BROWSERLESS
from environments.task_sources import ChangedTasks
from records.episodes import Task
from sites.settings import SitesSettings

RULES = {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["whatever the judge takes for it"]}}


def _asked(task: Task) -> Task:
    return replace(task, evaluation=dict(RULES))


def _tasks(settings: SitesSettings) -> ChangedTasks:
    return ChangedTasks(BROWSERLESS.tasks(settings), _asked)


ASKED = replace(BROWSERLESS, tasks=_tasks)
"""What ``run.environment`` names."""
