"""WebArena's tasks for a run: the task files that its recipe names, one for each split.

Owns ``WebArenaTasks``. Invariant: files are read when the first task is asked for, so that naming the
environment costs nothing. Must not import ray or torch.
"""

from __future__ import annotations

import random
from functools import cached_property
from typing import Any

from environments.task_sources import ListedTasks
from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.table import SiteTable
from environments.webarena.tasks.files import load_tasks
from environments.webarena.tasks.start_pages import START_PAGES, start_pages
from records.episodes import Task


class WebArenaTasks:
    """A ``TaskSource`` over task files by split (``WebArenaSettings.task_files``)."""

    def __init__(self, settings: WebArenaSettings) -> None:
        self._settings = settings

    def task_set(self, seed: int, split: str, count: int, *, at_least: int | None = None) -> list[Task]:
        """Return ``count`` tasks of ``split``; raise ``ValueError`` where there are no files or not enough tasks."""
        return self._listed.task_set(seed, split, count, at_least=at_least)

    def task(self, template: str, parameters: dict[str, Any]) -> Task:
        """Return the task of this template with these parameters; raise ``KeyError`` for others."""
        return self._listed.task(template, parameters)

    def similar(self, task: Task, rng: random.Random) -> Task | None:
        """Return another training task of the same template, or None."""
        return self._listed.similar(task, rng)

    @cached_property
    def _listed(self) -> ListedTasks:
        splits = self._settings.task_files
        if not splits:
            raise ValueError(
                "environments.webarena.task_files: expected a task file for each split, such as "
                "{train: train.json, test: test.json}, found none"
            )
        return ListedTasks([task for split in splits for task in webarena_task_list(self._settings, split)])


def webarena_task_list(settings: WebArenaSettings, split: str) -> list[Task]:
    """Return all tasks of a split that ``settings.task_files`` has; raise ``ValueError`` where they cannot be read."""
    path = settings.task_files[split]
    return (
        start_pages(settings, split)
        if path == START_PAGES
        else load_tasks(path, split=split, names=SiteTable.of(settings).names)
    )
