"""Templates written as records of functions; goes when the last of them is a class of its own."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from records.episodes import Task
from sites.checks import Evaluation, Milestones
from sites.experts import Actions, Expert, Intent
from sites.skills import noting
from sites.task_template import Parameters
from sites.task_template import TaskTemplate as Template

__all__ = ["Expert", "Intent", "Parameters", "Skill", "TaskTemplate", "noting"]
Skill = Actions


def TaskTemplate(
    *,
    name: str,
    site: str,
    intent: str,
    sample: Callable[[Any, random.Random], Parameters],
    evaluation: Callable[[Parameters, Any], Evaluation],
    milestones: Callable[[Parameters, Any], Milestones],
    expert: Callable[[Task], Expert],
    horizon: int | Callable[[Parameters, Any], int],
    require_login: bool = True,
    split: str = "train",
    start: str = "/",
    also: tuple[str, ...] = (),
    scripted: bool = False,
) -> type[Template]:
    """Return the template's class."""

    class Old:
        def __init__(self, **parameters: Any) -> None:
            self._parameters = parameters

        @classmethod
        def sample(cls, data: Any, rng: random.Random) -> Any:
            return cls(**sample(data, rng))

        @classmethod
        def filled(cls, parameters: Parameters) -> Any:
            return cls(**parameters)

        @classmethod
        def of(cls, task: Task) -> Any:
            filled = cls(**task.parameters)
            filled._task = task  # type: ignore[attr-defined]
            return filled

        @property
        def parameters(self) -> Parameters:
            return self._parameters

        def evaluation(self, data: Any) -> Evaluation:
            return evaluation(self._parameters, data)

        def milestones(self, data: Any) -> Milestones:
            return milestones(self._parameters, data)

        def expert(self) -> Expert:
            return expert(self._task)  # type: ignore[attr-defined]

        def steps(self, data: Any) -> int:
            return horizon if isinstance(horizon, int) else horizon(self._parameters, data)

    Old.name, Old.intent, Old.sites, Old.split = name, intent, (site, *also), split  # type: ignore[attr-defined]
    Old.horizon = horizon if isinstance(horizon, int) else 0  # type: ignore[attr-defined]
    Old.start, Old.require_login, Old.scripted = start, require_login, scripted  # type: ignore[attr-defined]
    return Old  # type: ignore[return-value]
