"""The embedded sites' tasks without a browser, each with a verdict that only an LLM judge can give."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from environments.embedded.kind import BROWSERLESS
from environments.task_sources import TaskSource
from records.episodes import Task
from sites.settings import SitesSettings

RULES = {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["whatever the judge takes for it"]}}


class AskedTasks:
    """A ``TaskSource`` over another one's tasks."""

    def __init__(self, source: TaskSource) -> None:
        self._source = source

    def task_set(self, seed: int, split: str, count: int, *, at_least: int | None = None) -> list[Task]:
        return [_asked(task) for task in self._source.task_set(seed, split, count, at_least=at_least)]

    def task(self, template: str, parameters: dict[str, Any]) -> Task:
        return _asked(self._source.task(template, parameters))

    def similar(self, task: Task, rng: random.Random) -> Task | None:
        found = self._source.similar(task, rng)
        return None if found is None else _asked(found)


def _asked(task: Task) -> Task:
    return replace(task, evaluation=dict(RULES))


def _tasks(settings: SitesSettings) -> AskedTasks:
    return AskedTasks(BROWSERLESS.tasks(settings))


ASKED = replace(BROWSERLESS, tasks=_tasks)
"""What ``run.environment`` names."""
