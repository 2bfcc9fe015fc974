"""A task template: an instruction with blanks, and what belongs to it, in one class.

Owns ``TaskTemplate``, and ``Blanks``: what has parameters, and how they are drawn. Sites' task modules import this
module (never ``sites.tasks``, which imports the sites). Invariants: parameters are JSON values and never contain the
answer of a question; evaluations use WebArena's three evaluators only.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from types import ModuleType
from typing import Any, ClassVar, Self, dataclass_transform

from records.episodes import Task
from sites.checks import Evaluation, Milestones
from sites.experts import Expert

Parameters = dict[str, Any]


def drawn(draw: Callable[..., Any], *of: str) -> Any:
    """A parameter and its draw, ``draw(data, rng, *values)``, whose values are those of the parameters ``of``."""
    return field(metadata={"draw": draw, "of": of, "together": False})


def together(draw: Callable[..., Parameters], *of: str) -> Any:
    """A parameter whose draw returns others with it, by their names; the others have no draw of their own."""
    return field(metadata={"draw": draw, "of": of, "together": True})


def one_of(values: Sequence[Any]) -> Any:
    """A parameter that is one of these values."""
    return drawn(lambda data, rng: rng.choice(values))


def always(value: Any) -> Any:
    """A parameter that is the same in all tasks."""
    return drawn(lambda data, rng: value)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(drawn, together, one_of, always, field)
)
class Blanks(ABC):
    """Something with a ``name`` and blanks; an instance is one with its blanks filled in.

    The parameters are the annotated attributes without a value, in the order in which they stand (``name_`` is the
    parameter "name": an underscore keeps it apart from the class's own). A class without a name is a family, which
    others derive from; it may have attributes with a value, which they turn into parameters.
    """

    name: ClassVar[str]
    _blanks: ClassVar[Mapping[str, Field[Any]]] = {}

    def __init_subclass__(cls, *, name: str = "") -> None:
        """Make the class a frozen dataclass of its parameters, by name."""
        super().__init_subclass__()
        cls.name = name
        made: Any = dataclass(frozen=True, kw_only=True)(cls)
        cls._blanks = {blank.name.removesuffix("_"): blank for blank in fields(made) if blank.default is MISSING}

    @classmethod
    def sample(cls, data: Any, rng: random.Random) -> Self:
        """Draw all parameters, anew until they fit."""
        while not (filled := cls.draw(data, rng)).fits(data):
            pass
        return filled

    @classmethod
    def draw(cls, data: Any, rng: random.Random, **given: Any) -> Self:
        """Draw the parameters that are not given, in their order, each as it says."""
        for name, blank in cls._blanks.items():
            if name not in given:
                how = blank.metadata
                value = how["draw"](data, rng, *(given[other] for other in how["of"]))
                given |= value if how["together"] else {name: value}
        return cls.filled(given)

    def fits(self, data: Any) -> bool:
        """Whether the parameters make sense: nothing is done yet, and no answer is given by something else."""
        return True

    @classmethod
    def filled(cls, parameters: Parameters) -> Self:
        """Return the blanks filled in with these parameters by name."""
        return cls(**{cls._blanks[name].name: value for name, value in parameters.items()})

    @property
    def parameters(self) -> Parameters:
        """What the blanks are filled with, by name."""
        return {name: getattr(self, blank.name) for name, blank in self._blanks.items()}


class TaskTemplate(Blanks):
    """One kind of task of one site, or of several; an instance is the template with its blanks filled in.

    A template is a class with a ``name``; without one it is a family, which templates derive from. ``intent`` is a
    format string over the parameters. ``horizon`` is the expert's number of actions, exit included (see ``steps``).
    ``split`` is train, validation or test. A task starts on the page ``start`` of the first of ``sites``, by default of
    the one that ``name`` begins with; with several sites ``data`` is a mapping from each site's name to that site's
    data. ``scripted`` says that its pages need their scripts, so that it cannot be played without a browser.
    """

    horizon: ClassVar[int]
    split: ClassVar[str]
    intent: ClassVar[str]
    sites: ClassVar[tuple[str, ...]] = ()
    start: ClassVar[str] = "/"
    require_login: ClassVar[bool] = True
    scripted: ClassVar[bool] = False

    def __init_subclass__(cls, *, name: str = "", horizon: int = 0, split: str = "train") -> None:
        """Make the class a frozen dataclass of its parameters, by name."""
        super().__init_subclass__(name=name)
        cls.horizon, cls.split = horizon, split
        cls.sites = cls.sites or ((name.partition(".")[0],) if name else ())

    @classmethod
    def of(cls, task: Task) -> Self:
        """Return the template filled in as it is in ``task``."""
        return cls.filled(task.parameters)

    @abstractmethod
    def evaluation(self, data: Any) -> Evaluation:
        """Return WebArena's ``eval`` object, computed from the parameters and the site's data."""

    @abstractmethod
    def milestones(self, data: Any) -> Milestones:
        """Return the four milestones in the order in which they are reached."""

    @abstractmethod
    def expert(self) -> Expert:
        """Yield intents and be sent the observation after each; ends with an ``exit`` where an answer is asked for."""

    def steps(self, data: Any) -> int:
        """Return the expert's number of actions with these parameters, where they decide it."""
        return self.horizon


def templates_of(*modules: ModuleType) -> tuple[type[TaskTemplate], ...]:
    """Return the templates that these modules define, a module after the other, in the order in which they stand."""
    return tuple(
        found
        for module in modules
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, TaskTemplate)
        if found.__module__ == module.__name__ and found.name
    )
