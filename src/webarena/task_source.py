"""WebArena's tasks for a run: the task files that its recipe names, one for each split.

Owns ``WebArenaTasks``. Invariant: files are read when the first task is asked for, so that naming the
environment costs nothing. Must not import ray or torch.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from replay.records import Task
from rollout_workers.task_sources import ListedTasks
from webarena.task_files import load_tasks


class WebArenaTasks:
    """A ``TaskSource`` over task files by split (``WebArenaSettings.task_files``)."""

    def __init__(self, task_files: Mapping[str, str]) -> None:
        self._files = dict(task_files)

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
        if not self._files:
            raise ValueError(
                "webarena.task_files: expected a task file for each split, such as "
                "{train: train.json, test: test.json}, found none"
            )
        return ListedTasks([task for split, path in self._files.items() for task in load_tasks(path, split=split)])
