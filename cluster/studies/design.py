"""What a study is: arms of one recipe, seeds, a grid, what is evaluated, and what is predicted.

Owns the form of study files. Invariants: everything that can be known to be wrong is refused before the first run
starts; of the test splits nothing enters the choice of a setting; a setting names one that the recipe has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from analysis.predictions import Prediction
from cluster.errors import RecipeError
from cluster.recipe.override import override
from cluster.recipe.recipe import Recipe, load_recipe
from cluster.recipe.yaml_file import parse_yaml, read_yaml_file
from policy.settings import TINY

Settings = Mapping[str, Any]
_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]*$"
START = "start"
"""Names the policies that the arms start from, as the first arm of every table."""
_OF_THE_STUDY = ("run.seed", "learner.seed", "run.evaluation.splits", "run.evaluation.every")
"""Settings that follow from the study itself."""
_OF_THE_START = ("run.evaluation.before_rl", "warm_start.checkpoint")
"""Settings of the arms that follow from the study's start."""
_SEEDS = "expected different seeds of 0 and more"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Arm(_Part):
    """One way to train: settings by their dotted names, and seeds of its own where it has fewer.

    ``like`` names the arm whose choice from the grid it takes, in place of trying the grid itself; what it sets itself
    counts more.
    """

    set: dict[str, Any] = {}
    seeds: tuple[int, ...] | None = None
    like: str = ""


class Start(_Part):
    """How the policy is made that all arms of a seed start from."""

    recipe: str
    set: dict[str, Any] = {}


class Grid(_Part):
    """Settings that are tried for every arm, under a seed of its own; the best on ``split`` is taken."""

    seed: int
    split: str
    set: dict[str, tuple[Any, ...]]

    def points(self) -> Iterator[Settings]:
        """Yield every combination, in the file's order."""
        for values in product(*self.set.values()):
            yield dict(zip(self.set, values, strict=True))


class StudyDesign(_Part):
    """A study file.

    ``set`` holds for every run. ``baseline`` is an arm that all others are compared with. ``groups`` names templates
    whose tasks are told apart, by a name for each. ``splits`` are evaluated once, after the last phase, and before the
    first.
    """

    name: str = Field(pattern=_NAME)
    recipe: str
    set: dict[str, Any] = {}
    seeds: tuple[int, ...] = Field(min_length=1)
    start: Start | None = None
    arms: dict[str, Arm] = Field(min_length=1)
    baseline: str
    grid: Grid | None = None
    splits: tuple[str, ...] = Field(min_length=1)
    groups: dict[str, str] = {}
    predictions: tuple[Prediction, ...] = ()

    @model_validator(mode="after")
    def _agrees(self) -> StudyDesign:
        for name in self.arms:
            _require(bool(re.match(_NAME, name)), f"arms: {name!r}: expected letters, digits and . _ + -")
            _require(name != START, f"arms: {START!r} names what all arms start from; choose another name")
            _require(_are_seeds(self.seeds_of(name)), f"arms: {name}: seeds: {_SEEDS}, found {self.seeds_of(name)}")
        self._require_own_settings()
        tries = [name for name, arm in self.arms.items() if not arm.like]
        for name, arm in self.arms.items():
            _require(
                arm.like in ("", *tries),
                f"arms: {name}: like: expected an arm that tries the grid itself ({_list(tries)}), found {arm.like!r}",
            )
            _require(not arm.like or self.grid is not None, f"arms: {name}: like: there is no grid to choose from")
        _require(self.baseline in self.arms, f"baseline: expected one of {_list(self.arms)}, found {self.baseline!r}")
        for one in self.predictions:
            for field, value, known in (
                ("arm", one.arm, self.arms), ("over", one.over, self.arms), ("split", one.split, self.splits),
                ("group", one.group, ("", *self.groups)),
            ):  # fmt: skip
                _require(
                    value in known, f"prediction {one.says!r}: {field}: expected one of {_list(known)}, found {value!r}"
                )
            _require(one.arm != one.over, f"prediction {one.says!r}: arm and over are the same")
            shared = set(self.seeds_of(one.arm)) & set(self.seeds_of(one.over))
            _require(bool(shared), f"prediction {one.says!r}: {one.arm} and {one.over} have no seed in common")
        if self.grid is not None:
            for setting, values in self.grid.set.items():
                _require(bool(values), f"grid.set: {setting}: expected a value at least, found none")
            _require(self.grid.seed >= 0, f"grid.seed: expected 0 or more, found {self.grid.seed}")
            _require(
                self.grid.split not in self.splits,
                f"grid.split: {self.grid.split!r} is one of splits, which choose nothing",
            )
            used = {seed for arm in self.arms for seed in self.seeds_of(arm)}
            _require(self.grid.seed not in used, f"grid.seed: {self.grid.seed} is one of seeds; a grid needs its own")
        return self

    def _require_own_settings(self) -> None:
        """Refuse a setting that would be set twice, of which one would silently not count."""
        own = [*_OF_THE_STUDY, *(_OF_THE_START if self.start is not None else [])]
        grid = [] if self.grid is None else list(self.grid.set)
        start = {} if self.start is None else self.start.set
        claims: list[tuple[str, Iterable[str], str, list[str]]] = [
            ("set", self.set, "the study", own),
            ("set", self.set, "the grid", grid),
            ("grid.set", grid, "the study", own),
            ("start.set", start, "the study", [*_OF_THE_STUDY, "run.evaluation.before_rl", "run.phases"]),
            *((f"arms: {name}: set", arm.set, "the study", own) for name, arm in self.arms.items()),
            *((f"arms: {name}: set", self.arms[name].set, "the grid", grid) for name in self.tries_grid),
        ]
        for where, settings, who, theirs in claims:
            for mine, other in product(settings, theirs):
                _require(not _overlap(mine, other), f"{where}: {mine}: {who} sets {other}; leave one of them out")

    @property
    def tries_grid(self) -> tuple[str, ...]:
        """The arms that are trained at every point of the grid."""
        return tuple(name for name, arm in self.arms.items() if self.grid is not None and not arm.like)

    @property
    def compared_with(self) -> tuple[str, ...]:
        """The arms that every other one is compared with: the baseline first, then those of the predictions."""
        return tuple(dict.fromkeys((self.baseline, *(one.over for one in self.predictions))))

    def seeds_of(self, arm: str) -> tuple[int, ...]:
        """Return the seeds that an arm is trained with."""
        own = self.arms[arm].seeds
        return self.seeds if own is None else own


@dataclass(frozen=True, slots=True)
class StudyFile:
    """A study's design with the folder that its recipes are relative to, and the bytes that it was read from."""

    design: StudyDesign
    folder: Path
    content: bytes

    @property
    def recipe(self) -> Path:
        """The recipe of every arm."""
        return self.folder / self.design.recipe

    def settings_of(self, arm: str, seed: int, point: Settings, splits: Sequence[str]) -> list[str]:
        """Return the overrides of one run of an arm, as ``--set`` takes them, without its start; later ones count."""
        found = {**self.design.set, **point, **self.design.arms[arm].set, "run.seed": seed, "learner.seed": seed}
        found["run.evaluation.splits"] = list(splits)
        if self.design.start is not None:
            found["run.evaluation.before_rl"] = arm == self._first_arm(seed)
        recipe = load_recipe(self.recipe, _overrides(found))
        return _overrides({**found, "run.evaluation.every": max(recipe.run.phases, 1)})

    def _first_arm(self, seed: int) -> str | None:
        """Return the arm whose run tells what the start of a seed does."""
        return next((arm for arm in self.design.arms if seed in self.design.seeds_of(arm)), None)

    def start_settings(self, seed: int) -> list[str]:
        """Return the overrides of the run that makes a seed's start policy."""
        assert self.design.start is not None
        own = {**self.design.set, **self.design.start.set, "run.seed": seed, "learner.seed": seed, "run.phases": 0}
        return _overrides(own)


def read_study(path: Path) -> StudyFile:
    """Return the study in a file, every recipe of it looked at.

    Raises:
        RecipeError: the file is no study, or a run of it has a recipe that cannot be used.
    """
    text = read_yaml_file(path, "study")
    try:
        design = StudyDesign.model_validate(parse_yaml(text, str(path)))
    except ValidationError as error:
        raise RecipeError("\n".join(f"{path}: {_explained(one)}" for one in error.errors())) from error
    study = StudyFile(design, path.resolve().parent, text.encode())
    _look_at(study, path)
    return study


def _explained(problem: ErrorDetails) -> str:
    said = str(problem["ctx"]["error"]) if problem["type"] == "value_error" else problem["msg"]
    place = ".".join(map(str, problem["loc"]))
    return f"{place}: {said}" if place else said


def _look_at(study: StudyFile, path: Path) -> None:
    design = study.design
    points = [{}] if design.grid is None else list(design.grid.points())
    splits = (*design.splits, *([design.grid.split] if design.grid else []))
    recipes: dict[str, Recipe] = {}
    for arm in design.arms:
        for point in points:
            try:
                recipe = load_recipe(study.recipe, study.settings_of(arm, design.seeds_of(arm)[0], point, splits))
            except RecipeError as error:
                raise RecipeError(f"{path}: arm {arm!r}: {error}") from error
            _require_phases(recipe, f"{path}: arm {arm!r}")
            if design.start is not None:
                _require_start(recipe, f"{path}: arm {arm!r}")
            recipes[arm] = recipe
    if design.start is not None:
        try:
            load_recipe(study.folder / design.start.recipe, study.start_settings(design.seeds[0]))
        except RecipeError as error:
            raise RecipeError(f"{path}: start: {error}") from error
    _require_same_tasks(recipes, path)


def _require_same_tasks(recipes: Mapping[str, Recipe], path: Path) -> None:
    """Refuse arms that are evaluated on different tasks, which share few or none to be compared on."""
    by_seed = {recipe.run.evaluation.seed: arm for arm, recipe in recipes.items()}
    if len(by_seed) > 1:
        raise RecipeError(
            f"{path}: arms {_list(sorted(by_seed.values())[:2])} are evaluated on different tasks; set "
            "run.evaluation.seed for all, under set:"
        )


def _require_phases(recipe: Recipe, where: str) -> None:
    if recipe.run.phases < 1:
        raise RecipeError(
            f"{where}: run.phases is 0: an arm of a study trains; cloning alone is told of every arm's start"
        )


def _require_start(recipe: Recipe, where: str) -> None:
    """Refuse an arm that would not begin with the policy that the study made for it."""
    if recipe.policy.model != TINY:
        raise RecipeError(
            f"{where}: policy.model is {recipe.policy.model}, and the study makes the start of every arm; set it to "
            "tiny, or leave start out"
        )
    if recipe.warm_start.clone == "always" and not recipe.warm_start.data:
        raise RecipeError(
            f"{where}: warm_start.clone is always, which clones onto new weights in place of the study's start; set it "
            "to auto, or leave start out"
        )


def _are_seeds(seeds: Sequence[int]) -> bool:
    return bool(seeds) and len(set(seeds)) == len(seeds) and min(seeds) >= 0


def _overlap(first: str, second: str) -> bool:
    """Whether two settings are the same, or one is a section that holds the other."""
    return f"{first}.".startswith(f"{second}.") or f"{second}.".startswith(f"{first}.")


def _overrides(settings: Settings) -> list[str]:
    return [override(name, value) for name, value in settings.items()]


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ValueError(message)


def _list(names: object) -> str:
    return ", ".join(repr(name) for name in names)  # type: ignore[attr-defined]
