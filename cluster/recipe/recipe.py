"""The recipe: one validated, immutable description of a run, read from YAML and overrides.

Owns loading, overriding, checking and hashing. Invariants: importing this module pulls in neither
torch nor ray nor a browser; a key that does not exist is an error that names the nearest one; no
environment variable changes a recipe. Every default and its meaning is in the settings class that
owns it; ``docs/reference/config.md`` is generated from those.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from cluster.errors import RecipeError
from cluster.recipe.plugged import PLUGGED, environment_section, own_sections, read_section, section_path
from cluster.recipe.run_settings import RunSettings, WarmStartSettings
from cluster.recipe.yaml_file import parse_yaml, read_yaml_file
from curriculum.settings import CurriculumSettings
from environments.browser.settings import BrowserSettings
from environments.kinds import KINDS
from judges.kinds import Judges
from judges.llm.settings import LlmSettings
from judges.settings import MilestoneSettings
from learner.algorithms import resolve
from learner.settings import LearnerSettings
from plugs.options import over_defaults
from policy.backend import with_options
from policy.settings import TINY, PolicySettings
from records.bounds import SettingError
from replay.settings import ReplaySettings
from rollout_workers.settings import RolloutSettings

Raw = dict[str, Any]
_EXPONENT = re.compile(r"[+-]?\d+e[+-]?\d+", re.IGNORECASE)
"""A number that YAML takes for a text."""
_WAYMARK = Path(__file__).resolve().parents[2]


class Recipe(BaseModel):
    """All settings of a run, one section for each package."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    operational: ClassVar[tuple[str, ...]] = ("monitors",)

    run: RunSettings = RunSettings()
    warm_start: WarmStartSettings = WarmStartSettings()
    environments: Mapping[str, object] = Field(default_factory=partial(own_sections, "environments"))
    judges: Mapping[str, object] = Field(default_factory=partial(own_sections, "judges"))
    milestones: MilestoneSettings = MilestoneSettings()
    browser: BrowserSettings = BrowserSettings()
    rollout: RolloutSettings = RolloutSettings()
    policy: PolicySettings = Field(default_factory=lambda: with_options(PolicySettings()))
    replay: ReplaySettings = ReplaySettings()
    learner: LearnerSettings = LearnerSettings()
    curriculum: CurriculumSettings = CurriculumSettings()
    monitors: Mapping[str, object] = Field(default_factory=partial(own_sections, "monitors"))

    @field_validator(*PLUGGED, mode="before")
    @classmethod
    def _read(cls, given: object, info: ValidationInfo) -> dict[str, object]:
        """Return each plug's options as its settings; those that ``build_recipe`` has read pass as they are."""
        read, problems = read_section(str(info.field_name), given)
        if problems:
            raise ValueError("; ".join(problems))
        return read

    @model_validator(mode="after")
    def _steps_are_judged(self) -> Recipe:
        """Refuse a reward of judged steps without a judge of steps, and the other way round."""
        needs = resolve(self.learner).needs_judged_steps
        if needs and not self.replay.step_rewards:
            raise ValueError(
                "replay.step_rewards: expected a judge of steps, which learner.reward asks for, found none"
            )
        if self.replay.step_rewards and not needs:
            raise ValueError(
                "replay.step_rewards: expected the reward 'process' or 'process_steps' with "
                f"{self.replay.step_rewards!r}, found one that does not use what it says"
            )
        return self

    @model_validator(mode="after")
    def _groups_are_sampled(self) -> Recipe:
        """Refuse to compare the episodes of a task where there is one of each."""
        if resolve(self.learner).needs_groups and self.run.attempts_per_task < 2:
            raise ValueError(
                "run.attempts_per_task: expected 2 or more, the episodes of a task that learner.algorithm "
                f"{self.learner.algorithm!r} compares, found {self.run.attempts_per_task}"
            )
        if resolve(self.learner).needs_groups and self.rollout.temperature == 0:
            raise ValueError(
                "rollout.temperature: expected above 0 with learner.algorithm "
                f"{self.learner.algorithm!r}, or all episodes of a task are the same one, found 0"
            )
        return self

    @model_validator(mode="after")
    def _critics_are_whole(self) -> Recipe:
        """Refuse to keep critics that are adapters on a backbone which the trained policy's folder does not have."""
        if self.run.keep_critics and self.learner.adapters.rank:
            raise ValueError(
                "run.keep_critics: expected false with learner.adapters, whose critics are no models of their own, "
                "found true"
            )
        return self

    @model_validator(mode="after")
    def _successes_are_known(self) -> Recipe:
        """Refuse milestones from successes without a model or a judge of them, or before it is known what succeeded."""
        if self.milestones.source != "successes":
            return self
        if not self.milestones.model:
            raise ValueError(
                "milestones.model: expected one of judges.llm.models, to distil milestones from successes, found none"
            )
        if not self.replay.milestones:
            raise ValueError(
                "replay.milestones: expected a judge that says which of the distilled milestones are reached, such as "
                "'milestone_matching', found none"
            )
        if self.replay.outcomes:
            raise ValueError(
                "replay.outcomes: expected none with milestones.source 'successes', for which the verdicts of play say "
                f"what succeeded, before recorded episodes are judged, found {self.replay.outcomes!r}"
            )
        return self

    @model_validator(mode="after")
    def _answers_are_checked(self) -> Recipe:
        """Refuse answers as milestones where a judge, who does not know them, says which milestones are reached."""
        if self.milestones.answer and self.replay.milestones:
            raise ValueError(
                "milestones.answer: expected false with replay.milestones, whose judge does not know right answers, "
                "found true"
            )
        return self

    @model_validator(mode="after")
    def _may_play_ahead(self) -> Recipe:
        """Refuse rollouts of older weights where they teach something else, and where their tasks are not known yet."""
        if not self.rollout.max_staleness:
            return self
        if resolve(self.learner).needs_newest_policy:
            raise ValueError(
                f"rollout.max_staleness: expected 0 with learner.algorithm {self.learner.algorithm!r}, which compares "
                "what one policy sampled and keeps close to that policy, found "
                f"{self.rollout.max_staleness}: leave it at 0, or choose an algorithm that learns from older rollouts, "
                "such as 'mira', 'webrl', 'awr', 'digirl' or 'filtered_bc'"
            )
        if self.curriculum.value_band:
            raise ValueError(
                "rollout.max_staleness: expected 0 with curriculum.value_band, by which a phase's tasks are known only "
                f"once the critics have learned, found {self.rollout.max_staleness}: turn one of them off"
            )
        return self

    def environment_settings(self, name: str) -> object:
        """Return the settings of the environment called ``name``; raise ``ValueError`` where there is none."""
        return self.environments.get(environment_section(name)) or KINDS.find(name).settings()

    @property
    def judges_of_run(self) -> Judges:
        """The judges, each with its options."""
        return Judges(self.judges)

    @property
    def llm(self) -> LlmSettings:
        """The language models that judges may ask."""
        settings = self.judges["llm"]
        assert isinstance(settings, LlmSettings)
        return settings

    @property
    def plugs(self) -> list[str]:
        """What the recipe names as ``module:name``, each once: environments, judges, monitors and the backend."""
        named = [self.run.environment, self.policy.backend, *self.environments, *self.judges, *self.monitors]
        named += [self.rollout.trajectory_judge, self.rollout.milestone_judge, *self.replay.judges.values()]
        return [name for name in dict.fromkeys(named) if ":" in name]

    @property
    def checkpoint_path(self) -> Path:
        """Where ``warm_start.checkpoint`` lies: as named from the working folder, else from Waymark's own."""
        named = Path(self.warm_start.checkpoint).expanduser()
        return named if named.is_absolute() or named.exists() else _WAYMARK / named

    @property
    def data_path(self) -> Path:
        """Where ``warm_start.data`` lies."""
        return Path(self.warm_start.data).expanduser()

    @property
    def clones(self) -> bool:
        """Whether demonstrations are cloned before RL; see ``warm_start.clone``."""
        unless_there = self.policy.model == TINY and not self.warm_start.checkpoint
        wanted = bool(self.warm_start.data) or unless_there
        return self.warm_start.clone == "always" or (self.warm_start.clone == "auto" and wanted)

    @property
    def demonstrates(self) -> bool:
        """Whether experts of the embedded sites teach: not beside other data, nor the critics of a model as it is."""
        return not self.warm_start.data and (self.policy.model == TINY or self.clones)


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a YAML recipe, apply ``a.b=value`` overrides in order, and validate the result.

    Raises ``RecipeError`` with one line per problem: where it is, what was expected, what was found.
    """
    raw = parse_yaml(read_yaml_file(path, "recipe"), str(path))
    return build_recipe(raw, overrides, origin=str(path))


def build_recipe(raw: Any, overrides: Sequence[str] = (), origin: str = "recipe") -> Recipe:
    """Validate a mapping as a recipe after applying overrides; ``origin`` names it in errors."""
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise RecipeError(f"{origin}: expected sections such as 'run:', found a {type(raw).__name__}")
    for override in overrides:
        raw = _override(raw, override)
    default = Recipe()
    defaults = {name: getattr(default, name) for name in Recipe.model_fields}
    raw = over_defaults({**defaults, "policy": PolicySettings()}, raw)  # another backend has other options
    _require_finite(raw, origin)
    problems: list[str] = []
    for section in PLUGGED:
        raw[section], wrong = read_section(section, raw.get(section))
        problems += wrong
    try:
        recipe = Recipe.model_validate(raw)
    except ValidationError as error:
        problems += [_explain(detail) for detail in error.errors()]
    if not problems:
        try:
            recipe = recipe.model_copy(update={"policy": with_options(recipe.policy)})
        except ValueError as error:
            problems += str(error).splitlines()
    if problems:
        raise RecipeError("\n".join(f"{origin}: {line}" for line in problems))
    _require_finite(resolved(recipe), origin)  # once more: a text such as 'inf' has become a number
    return recipe


def resolved(recipe: Recipe) -> Raw:
    """Return every setting, defaults included, as plain JSON values."""
    return recipe.model_dump(mode="json")


def flatten(raw: Raw, prefix: str = "") -> dict[str, Any]:
    """Return ``{"section.key": value}`` for every leaf of a nested mapping; an empty mapping is a leaf."""
    leaves: dict[str, Any] = {}
    for key, value in raw.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            leaves.update(flatten(value, f"{path}."))
        else:
            leaves[path] = value
    return leaves


def operational_keys(recipe: Recipe) -> list[str]:
    """Return the dotted names of the settings and sections that a run may go on without, or with others.

    They are what each settings class calls ``operational``: counts of processes, cores and memory, limits, addresses.
    """
    return list(_operational(recipe, ""))


def _operational(settings: object, prefix: str) -> Iterable[str]:
    names = getattr(type(settings), "operational", ())
    yield from (f"{prefix}{name}" for name in names)
    for name, value in _fields_of(settings).items():
        if name not in names:
            yield from _operational(value, f"{prefix}{name}.")


def _unset(settings: object, prefix: str) -> Iterable[tuple[str, object]]:
    """Yield the settings that came later, with the value at which a run is as those that did not have them."""
    yield from ((f"{prefix}{name}", value) for name, value in getattr(type(settings), "unset", {}).items())
    for name, value in _fields_of(settings).items():
        yield from _unset(value, f"{prefix}{name}.")


def _fields_of(settings: object) -> Mapping[str, object]:
    if isinstance(settings, Mapping):
        return settings
    if isinstance(settings, BaseModel):
        return dict(settings)
    names = dataclasses.fields(settings) if dataclasses.is_dataclass(settings) else ()
    return {field.name: getattr(settings, field.name) for field in names}


def identity(recipe: Recipe, config: Raw | None = None) -> dict[str, Any]:
    """Return the settings that a run's numbers follow from, by their dotted names: all but the operational ones.

    A setting that came later is left out where it changes nothing (``unset``), so that older runs go on.
    ``config`` is an earlier recipe's, resolved, to be told from this one; None is this one's.
    """
    left_out = tuple(f"{key}." for key in operational_keys(recipe))
    values = flatten(resolved(recipe) if config is None else config)
    unset, absent = dict(_unset(recipe, "")), object()
    return {
        key: value
        for key, value in values.items()
        if not f"{key}.".startswith(left_out) and unset.get(key, absent) != value
    }


def config_hash(recipe: Recipe) -> str:
    """Return a SHA-256 in hex over ``identity``; independent of key order and of how a value was written."""
    canonical = json.dumps(identity(recipe), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def known_keys() -> list[str]:
    """Return the dotted path of every setting and section, in order of definition."""
    tree = resolved(Recipe())
    return list(dict.fromkeys([*_section_paths(tree, ""), *flatten(tree)]))


def nearest_key(path: str) -> str | None:
    """Return the key most like ``path``: its last part elsewhere, then one beside it, then by spelling."""
    keys = known_keys()
    parent, _, leaf = path.rpartition(".")
    prefix = f"{parent}." if parent else ""
    same_leaf = [key for key in keys if key.rpartition(".")[2] == leaf]
    if same_leaf:
        return max(same_leaf, key=lambda key: difflib.SequenceMatcher(None, key, path).ratio())
    siblings = [key[len(prefix) :] for key in keys if key.startswith(prefix)]
    beside = difflib.get_close_matches(leaf, [name for name in siblings if name and "." not in name], n=1)
    if beside:
        return prefix + beside[0]
    anywhere = difflib.get_close_matches(path, keys, n=1)
    return anywhere[0] if anywhere else None


def _override(raw: Raw, override: str) -> Raw:
    """Return a copy of ``raw`` with one ``a.b=value`` applied; the value is read as YAML."""
    path, equals, text = override.partition("=")
    keys = section_path(path.strip())
    if not equals or not all(keys):
        raise RecipeError(f"--set expects section.key=value, found {override!r}")
    value = parse_yaml(text, f"--set {override}")

    def place(node: Any, depth: int) -> Any:
        if depth == len(keys):
            return value
        if node is None:
            node = {}
        if not isinstance(node, dict):
            where = ".".join(keys[:depth])
            raise RecipeError(f"--set {override}: {where} is a {type(node).__name__} here and has no {keys[depth]!r}")
        return {**node, keys[depth]: place(node.get(keys[depth]), depth + 1)}

    return place(raw, 0)


def _require_finite(raw: Raw, origin: str) -> None:
    problems = list(_non_finite(raw, ()))
    if problems:
        raise RecipeError("\n".join(f"{origin}: {problem}" for problem in problems))


def _non_finite(value: Any, path: tuple[str, ...]) -> Iterable[str]:
    """Yield a problem for every infinite or undefined number: no setting means one."""
    if isinstance(value, str) and _EXPONENT.fullmatch(value):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{'.'.join(path)}: expected a finite number, found {value}"
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from _non_finite(child, (*path, str(key)))


def _section_paths(tree: Raw, prefix: str) -> Iterable[str]:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield f"{prefix}{key}"
            yield from _section_paths(value, f"{prefix}{key}.")


def _explain(detail: Any) -> str:
    """Turn one pydantic error into a line for the reader."""
    path = ".".join(str(part) for part in detail["loc"]) or "recipe"
    if detail["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        nearest = nearest_key(path)
        hint = f"; did you mean {nearest!r}?" if nearest else f"; there are: {', '.join(Recipe.model_fields)}"
        return f"unknown key {path!r}{hint}"
    if detail["type"] in {"dataclass_type", "dataclass_exact_type", "model_type"}:
        return f"{path}: expected a section with keys of its own, found {_short(detail['input'])}"
    if detail["type"] == "value_error":
        error = detail["ctx"]["error"]
        if isinstance(error, SettingError):
            return f"{path}.{error}"
        return f"{path}: {str(error).removeprefix(f'{path}: ')}"
    return f"{path}: {detail['msg']}, found {_short(detail['input'])}"


def _short(value: Any, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
