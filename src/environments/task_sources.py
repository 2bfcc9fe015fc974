"""Where an environment's tasks come from.

Owns the ``TaskSource`` protocol, ``ListedTasks``, for environments that bring a list, and ``ChangedTasks``. Invariants:
what a source draws depends on its arguments alone; a task of one split is in no other. Must not import ray or torch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from records.episodes import Task


class TaskSource(Protocol):
    """Draws tasks for training and evaluation."""

    def task_set(self, seed: int, split: str, count: int, *, at_least: int | None = None) -> list[Task]:
        """Return ``count`` different tasks of ``split``, or those there are where ``at_least`` so many will do.

        Raises ``ValueError`` when there are fewer than ``at_least`` (None: than ``count``).
        """
        ...

    def task(self, template: str, parameters: dict[str, Any]) -> Task:
        """Return the task of this template with these parameters (JSON values); raise ``KeyError`` for others."""
        ...

    def similar(self, task: Task, rng: random.Random) -> Task | None:
        """Return a training task of the same template with other parameters, or None where none is found."""
        ...


class ListedTasks:
    """A fixed list of tasks; each names its ``split``, and template and parameters together name one task."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = list(tasks)
        twice = {task.task_id for task in tasks if sum(other.task_id == task.task_id for other in tasks) > 1}
        if twice:
            raise ValueError(f"expected every task once, found several of {sorted(twice)}")

    def task_set(self, seed: int, split: str, count: int, *, at_least: int | None = None) -> list[Task]:
        """Return ``count`` tasks of ``split`` in an order that ``seed`` decides; see ``TaskSource``."""
        found = [task for task in self._tasks if task.split == split]
        needed = count if at_least is None else at_least
        if needed > len(found):
            raise ValueError(f"split {split!r} has {len(found)} tasks, {needed} were asked for")
        return random.Random(f"{seed}/{split}").sample(found, min(count, len(found)))

    def task(self, template: str, parameters: dict[str, Any]) -> Task:
        """Return the listed task."""
        for task in self._tasks:
            if (task.template, task.parameters) == (template, parameters):
                return task
        raise KeyError(f"no task of template {template!r} with parameters {parameters!r} is listed")

    def similar(self, task: Task, rng: random.Random) -> Task | None:
        """Return another training task of the same template."""
        others = [
            t for t in self._tasks if (t.template, t.split) == (task.template, "train") and t.task_id != task.task_id
        ]
        return rng.choice(others) if others else None


class ChangedTasks:
    """The tasks of another source, each as ``change`` returns it; their ids stay."""

    def __init__(self, source: TaskSource, change: Callable[[Task], Task]) -> None:
        self._source, self._change = source, change

    def task_set(self, seed: int, split: str, count: int, *, at_least: int | None = None) -> list[Task]:
        """Return the source's set, changed; see ``TaskSource``."""
        return [self._change(task) for task in self._source.task_set(seed, split, count, at_least=at_least)]

    def task(self, template: str, parameters: dict[str, Any]) -> Task:
        """Return the source's task, changed."""
        return self._change(self._source.task(template, parameters))

    def similar(self, task: Task, rng: random.Random) -> Task | None:
        """Return what the source finds, changed."""
        found = self._source.similar(task, rng)
        return None if found is None else self._change(found)
