"""The training tasks, and the wall between them and every evaluation set.

Owns ``TrainingTasks`` and ``HeldOut``. Invariant: training tasks that hold a task or a template of an evaluation
set cannot be made; they are an error, never a silent removal, because a leak means that a split is wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from records.episodes import Task


class EvaluationLeakError(Exception):
    """Training tasks belong to an evaluation set; the text names them and how they do."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What evaluation sets keep for themselves.

    Tasks are recognised by id, by template with parameters, and by the wording of their instruction;
    ``templates`` are kept back as a whole.
    """

    task_ids: frozenset[str] = frozenset()
    instances: frozenset[tuple[str, str]] = frozenset()
    intents: frozenset[str] = frozenset()
    templates: frozenset[str] = frozenset()

    @classmethod
    def of(cls, *, tasks: Iterable[Task] = (), with_templates: Iterable[Task] = ()) -> HeldOut:
        """Hold out evaluation tasks.

        Args:
            tasks: of splits that share templates with training but not parameters (``validation``,
                ``test``): each task is held out, its template is not.
            with_templates: of splits by template (``validation_templates``, ``test_templates``, or any
                foreign benchmark): tasks and templates are held out.
        """
        whole = list(with_templates)
        everything = [*tasks, *whole]
        return cls(
            frozenset(t.task_id for t in everything),
            frozenset(_instance(t) for t in everything),
            frozenset(_wording(t.intent) for t in everything),
            frozenset(t.template for t in whole),
        )

    def conflict(self, task: Task) -> str | None:
        """Return how a task conflicts with the evaluation sets, None where it does not."""
        if task.task_id in self.task_ids:
            return "its id is an evaluation task's"
        if task.template in self.templates:
            return f"its template {task.template} is held out"
        if _instance(task) in self.instances:
            return f"template {task.template} with its parameters is an evaluation task"
        if _wording(task.intent) in self.intents:
            return "an evaluation task has the same instruction"
        return None

    def check(self, tasks: Iterable[Task]) -> None:
        """Raise ``EvaluationLeakError`` naming the tasks that conflict with the evaluation sets."""
        conflicts = [(task.task_id, reason) for task in tasks if (reason := self.conflict(task))]
        if conflicts:
            shown = "; ".join(f"task {task_id}: {reason}" for task_id, reason in conflicts[:5])
            raise EvaluationLeakError(
                f"expected training tasks apart from every evaluation set, found {len(conflicts)} that are not "
                f"({shown}); correct the splits, or make ids unique across task files"
            )


class TrainingTasks:
    """The training tasks that the curriculum chooses from, in the order of their ids."""

    def __init__(self, tasks: Iterable[Task], held_out: HeldOut) -> None:
        """Check and order the tasks.

        Raises:
            EvaluationLeakError: where a task belongs to an evaluation set.
            ValueError: for no tasks or an id that comes twice.
        """
        self.tasks = tuple(sorted(tasks, key=lambda task: task.task_id))
        self.held_out = held_out
        repeated = [i for i, n in Counter(task.task_id for task in self.tasks).items() if n > 1]
        if not self.tasks or repeated:
            raise ValueError(
                f"training tasks: expected tasks with distinct ids, found {len(self.tasks)}, twice {repeated[:5]}"
            )
        held_out.check(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def thin_sites(self, fewer_than: int, sites: Iterable[str]) -> frozenset[str]:
        """Return those of ``sites`` with fewer than this many training tasks."""
        have = Counter(task.site for task in self.tasks)
        return frozenset(site for site in sites if have[site] < fewer_than)


def _instance(task: Task) -> tuple[str, str]:
    if not task.parameters:
        # Without parameters only the wording tells two tasks of a template apart.
        return task.template, _wording(task.intent)
    return task.template, json.dumps(task.parameters, sort_keys=True, default=str)


def _wording(intent: str) -> str:
    return " ".join(intent.casefold().split())
