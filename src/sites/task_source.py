"""The embedded sites' tasks as a ``TaskSource`` of environments."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from records.episodes import Task
from sites.tasks import drawn_tasks, make_task, split_of, task_set, template_data, template_named

_DRAWS = 40
"""Parameters that are drawn in search of a similar task."""


class EmbeddedTasks:
    """Tasks of the named sites and collections over the data of ``data_seed``.

    Without ``scripted``, tasks that need a browser are left out.
    """

    def __init__(self, names: Sequence[str], data_seed: int = 0, *, scripted: bool = True) -> None:
        self._names, self._data_seed, self._scripted = names, data_seed, scripted

    def task_set(self, seed: int, split: str, count: int, *, at_least: int | None = None) -> list[Task]:
        """Return ``count`` different tasks of ``split``; see ``sites.tasks.task_set``."""
        return task_set(
            seed, self._names, split, count, data_seed=self._data_seed, scripted=self._scripted, at_least=at_least
        )

    def drawn(self, seed: int, split: str) -> Iterator[Task]:
        """Return different tasks of ``split`` as they are drawn; see ``sites.tasks.drawn_tasks``."""
        return drawn_tasks(seed, self._names, split, data_seed=self._data_seed, scripted=self._scripted)

    def task(self, template: str, parameters: dict[str, Any]) -> Task:
        """Return the task of this template with these parameters."""
        found = template_named(template)
        return make_task(found.filled(parameters), template_data(found, self._data_seed))

    def similar(self, task: Task, rng: random.Random) -> Task | None:
        """Return a task of the same template with other training parameters, or None where none is found."""
        template = template_named(task.template)
        data = template_data(template, self._data_seed)
        for _ in range(_DRAWS):
            filled = template.sample(data, rng)
            if filled.parameters != task.parameters and split_of(template, filled.parameters) == "train":
                return make_task(filled, data)
        return None
