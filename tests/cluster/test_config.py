"""A recipe is strict, explains its errors, and costs no heavy import."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.errors import ExitCode, RecipeError
from cluster.recipe import yaml_file
from cluster.recipe.recipe import (
    Recipe,
    build_recipe,
    config_hash,
    flatten,
    identity,
    known_keys,
    load_recipe,
    resolved,
)
from cluster.studies.design import read_study
from policy.backend import BACKENDS
from sites.settings import SitesSettings
from tests.not_files import NOT_FILES, at_once


def settings_classes() -> list[type]:
    """Every settings dataclass that a recipe embeds, at any depth."""
    found: list[type] = []
    recipe = Recipe()
    waiting: list[Any] = [getattr(recipe, name) for name in Recipe.model_fields]
    waiting += [*recipe.environments.values(), *recipe.judges.values()]
    while waiting:
        value = waiting.pop()
        if dataclasses.is_dataclass(value):
            found.append(type(value))
            waiting.extend(getattr(value, field.name) for field in dataclasses.fields(value))
    return found


@pytest.mark.parametrize("settings", settings_classes(), ids=lambda settings: settings.__name__)
def test_every_embedded_settings_class_forbids_unknown_keys(settings: Any) -> None:
    assert settings.__pydantic_config__ == {"extra": "forbid"}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"run": {"phase": 3}}, "unknown key 'run.phase'; did you mean 'run.phases'?"),
        ({"runn": {}}, "unknown key 'runn'; did you mean 'run'?"),
        ({"learner": {"potental": {"epochs": 1}}}, "unknown key 'learner.potental'; did you mean 'learner.potential'?"),
        ({"run": {"learner_cpus": 1}}, "did you mean 'run.resources.learner_cpus'?"),
        ({"run": {"evaluation": {"every": "often"}}}, "run.evaluation.every: Input should be a valid integer"),
        ({"run": {"evaluation": {"every": 0}}}, "run.evaluation.every must be at least 1, found 0"),
        ({"run": {"evaluation": {"splits": ["tset"]}}}, "test_templates, found ['tset']"),
        (
            {"run": {"evaluation": {"tasks": {"tset": 9}}}},
            "run.evaluation.tasks must be numbers of splits out of train, validation",
        ),
        ({"run": {"evaluation": {"tasks": {"test": 0}}}}, "run.evaluation.tasks.test must be at least 1, found 0"),
        ({"run": {"evaluation": {"tasks": 50}}}, "run.evaluation.tasks: Input should be a valid dictionary, found 50"),
        (
            {"judges": {"evaluators": {"answer_timeouts_s": 9}}},
            "unknown key 'judges.evaluators.answer_timeouts_s'; did you mean 'judges.evaluators.answer_timeout_s'?",
        ),
        (
            {"judges": {"evaluators": {"answer_timeout_s": 0}}},
            "judges.evaluators.answer_timeout_s must be a time above 0 s, found 0",
        ),
        ({"environments": {"embeded": {}}}, "environments.embeded: expected an environment out of"),
        ({"environments": {"embeded": {}}}, "found 'embeded'; did you mean 'embedded'?"),
        ({"environments": {"browserless": {}}}, "its settings stand in environments.embedded"),
        ({"environments": {"embedded": 3}}, "environments.embedded: expected a section with keys of its own, found 3"),
        ({"environments": ["embedded"]}, "environments: expected a section for each name, found ['embedded']"),
        (
            {"environments": {"embedded": {"faults": {"eror_share": 1}}}},
            "unknown key 'environments.embedded.faults.eror_share'; did you mean "
            "'environments.embedded.faults.error_share'?",
        ),
        ({"judges": {"nobody:judge": {}}}, "judges.nobody:judge: 'nobody:judge': cannot import 'nobody'"),
        ({"run": 3}, "run: expected a section with keys of its own, found 3"),
        ({"run": {"name": "../x"}}, "usable as a folder's name"),
        ({"learner": {"gamma": float("nan")}}, "learner.gamma: expected a finite number, found nan"),
        ({"learner": {"gamma": "1e999"}}, "learner.gamma: expected a finite number, found inf"),
        (["run"], "expected sections such as 'run:', found a list"),
    ],
)
def test_what_is_wrong_is_named(raw: Any, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        build_recipe(raw)
    assert message in str(caught.value)
    assert caught.value.code == ExitCode.USAGE


def test_every_problem_is_reported_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        build_recipe({"run": {"phase": 3, "seed": "x"}, "replay": {"per": "episode"}})
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert all(line.startswith("recipe: ") for line in lines)


def test_overrides_are_yaml_scalars_applied_in_order() -> None:
    overrides = [
        "run.phases=7", "run.phases=8", "run.dashboard=false", "run.evaluation.splits=[test]", "run.name=x=y",
        "learner.actor.learning_rate=3e-4", "learner.clone.time_limit_s=null",
    ]  # fmt: skip
    recipe = build_recipe({"run": {"phases": 1}}, overrides)
    assert recipe.run.phases == 8
    assert recipe.run.dashboard is False
    assert recipe.run.evaluation.splits == ("test",)
    assert recipe.run.name == "x=y"
    assert recipe.learner.actor.learning_rate == 3e-4
    assert recipe.learner.clone.time_limit_s is None


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("run.phses=3", "did you mean 'run.phases'"),
        ("run.phases", "section.key=value"),
        (".phases=1", "section.key=value"),
        ("run.name.first=x", "run.name is a str here and has no 'first'"),
        ("run.phases=[", "not valid YAML"),
        ("run.phases=many", "run.phases: Input should be a valid integer"),
    ],
)
def test_overrides_pass_the_same_checks(override: str, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        build_recipe({"run": {"name": "a"}}, [override])
    assert message in str(caught.value)


def test_overrides_leave_the_given_mapping_alone() -> None:
    raw = {"run": {"phases": 1}}
    build_recipe(raw, ["run.phases=2"])
    assert raw == {"run": {"phases": 1}}


def test_a_section_keeps_its_own_defaults_when_one_of_its_keys_is_set() -> None:
    default = Recipe().learner.potential
    changed = build_recipe({"learner": {"potential": {"batch_steps": 7}}}).learner.potential
    assert changed == dataclasses.replace(default, batch_steps=7)
    assert default.learning_rate != Recipe().learner.value.learning_rate


def test_an_empty_section_and_an_empty_file_mean_the_defaults(tmp_path: Path) -> None:
    assert build_recipe({"run": None, "learner": {"actor": None}}) == Recipe()
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    assert load_recipe(tmp_path / "empty.yaml") == Recipe()


def test_the_hash_depends_on_values_and_not_on_how_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("run: {seed: 3, phases: 2}\nlearner: {gamma: 0.95}\n")
    (tmp_path / "b.yaml").write_text("learner:\n  gamma: 95e-2\nrun:\n  phases: 2\n  seed: 3\n")
    first, second = (config_hash(load_recipe(tmp_path / name)) for name in ("a.yaml", "b.yaml"))
    assert first == second
    assert first != config_hash(load_recipe(tmp_path / "a.yaml", ["learner.gamma=0.96"]))


def test_what_is_operational_is_a_setting_of_its_class_and_not_of_the_identity() -> None:
    found = {**vars(Recipe()), **{backend: BACKENDS.find(backend).settings() for backend in BACKENDS.own}}
    named = [(type(s), name) for s in _sections(found) for name in getattr(type(s), "operational", ())]
    assert len(named) > 40
    for settings, name in named:
        assert name in {field.name for field in dataclasses.fields(settings)}, f"{settings.__name__}.{name}"
    left = set(identity(Recipe()))
    assert not left & {
        "rollout.workers",
        "policy.options.servers",
        "run.resources.address",
        "environments.embedded.memory_mb",
    }
    assert left >= {"rollout.temperature", "policy.options.max_batch", "run.phases", "learner.gamma"}


def _sections(settings: object) -> Iterator[object]:
    inner: Iterable[object] = settings.values() if isinstance(settings, Mapping) else ()
    if dataclasses.is_dataclass(settings):
        inner = [getattr(settings, field.name) for field in dataclasses.fields(settings)]
        yield settings
    for one in inner:
        yield from _sections(one)


def test_runs_of_before_final_states_go_on_with_their_recipe_and_no_other() -> None:
    recipe, asked = build_recipe({}), build_recipe({"rollout": {"final_state": True}})
    older = resolved(recipe)
    del older["rollout"]["final_state"]
    assert identity(recipe, older) == identity(recipe)
    assert identity(asked, older) != identity(asked)
    assert config_hash(asked) != config_hash(recipe)


def test_the_hash_is_the_same_in_another_process(child_env: dict[str, str]) -> None:
    code = "from cluster.recipe.recipe import *; print(config_hash(Recipe()))"
    child = {**child_env, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", code]
    other = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240, env=child)
    assert other.stdout.strip() == config_hash(Recipe())


def test_the_resolved_recipe_loads_as_itself() -> None:
    recipe = build_recipe({}, ["run.phases=9", "learner.actor.beta=0.5"])
    assert build_recipe(resolved(recipe)) == recipe


def test_a_key_written_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.yaml"
    path.write_text("run:\n  phases: 1\n  phases: 2\n")
    with pytest.raises(RecipeError, match="'phases' is there twice"):
        load_recipe(path)


def test_an_error_in_yaml_shows_the_line_and_the_place_in_it(tmp_path: Path) -> None:
    path = tmp_path / "open.yaml"
    path.write_text("run:\n  phases: [1\nlearner: {}\n")
    with pytest.raises(RecipeError, match="not valid YAML") as refused:
        load_recipe(path)
    assert "line 2, column 11:\n      phases: [1\n              ^" in str(refused.value)


PARSERS = yaml_file._PlainYaml.__subclasses__()


@pytest.mark.parametrize("parser", PARSERS)
def test_each_parser_reads_what_is_shipped_as_yaml_itself_does(parser: type[yaml.SafeLoader]) -> None:
    root = Path(__file__).parents[2]
    texts = [path.read_text() for folder in ("cluster", "benchmarks") for path in root.glob(f"{folder}/**/*.yaml")]
    assert len(texts) > 10
    assert [yaml.load(text, Loader=parser) for text in texts] == [yaml.safe_load(text) for text in texts]


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize(("text", "found"), [("a: &x 1\nb: *x", "alias 'x'"), ("a: 1\na: 2", "'a' is there twice")])
def test_each_parser_refuses_aliases_and_doubled_keys(parser: type[yaml.SafeLoader], text: str, found: str) -> None:
    with pytest.raises(yaml.YAMLError, match=found):
        yaml.load(text, Loader=parser)


def test_yaml_cannot_construct_objects(tmp_path: Path) -> None:
    path = tmp_path / "object.yaml"
    path.write_text("run: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(RecipeError, match="not valid YAML"):
        load_recipe(path)


def test_a_missing_recipe_says_so(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="No such file"):
        load_recipe(tmp_path / "none.yaml")


@pytest.mark.parametrize("kind", [kind for kind in NOT_FILES if "link" not in kind])
def test_what_is_no_file_is_refused_as_a_recipe_and_as_a_study_at_once(tmp_path: Path, kind: str) -> None:
    NOT_FILES[kind](tmp_path / "it")
    for read, what in ((load_recipe, "recipe"), (read_study, "study")):
        said = f"it: expected a file, found {kind}; give the path of a {what}"
        with at_once(), pytest.raises(RecipeError, match=said):
            read(tmp_path / "it")


def test_a_recipe_longer_than_anybody_writes_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "long.yaml").open("wb") as file:
        file.truncate(2**40)
    with at_once(), pytest.raises(RecipeError, match="expected a recipe of at most 1048576 bytes, found more"):
        load_recipe(tmp_path / "long.yaml")


def test_a_recipe_cannot_be_changed() -> None:
    with pytest.raises(Exception, match="frozen"):
        Recipe().run = None  # type: ignore[assignment, misc]


def test_flatten_and_known_keys_name_every_leaf() -> None:
    assert flatten({"a": {"b": 1, "c": {}}, "d": [2]}) == {"a.b": 1, "a.c": {}, "d": [2]}
    keys = known_keys()
    assert {"run", "run.evaluation", "run.evaluation.passes", "learner.actor.beta"} <= set(keys)
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    "module", ["cluster.recipe.recipe", "cluster.cli", "cluster.preflight.plan", "cluster.run_folder.manifest"]
)
def test_light_modules_import_nothing_heavy(module: str, child_env: dict[str, str]) -> None:
    code = (
        f"import {module}, sys; print([m for m in ('torch', 'ray', 'playwright', 'transformers') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240, env=child_env)
    assert done.stdout.strip() == "[]"


def test_every_shipped_recipe_is_valid() -> None:
    folder = Path(__file__).resolve().parents[2] / "cluster" / "recipes"
    names = [load_recipe(path).run.name for path in sorted(folder.glob("*.yaml"))]
    assert "laptop" in names
    assert len(set(names)) == len(names), "two recipes would share a run folder"


def test_the_demo_plays_what_its_policy_was_cloned_on() -> None:
    folder = Path(__file__).resolve().parents[2] / "cluster" / "recipes"
    demo, cloned = load_recipe(folder / "laptop.yaml"), load_recipe(folder / "tiny-cloned.yaml")
    assert Path(demo.warm_start.checkpoint).name == cloned.run.name
    sites, cloned_on = demo.environment_settings("embedded"), cloned.environment_settings("embedded")
    assert isinstance(sites, SitesSettings)
    assert isinstance(cloned_on, SitesSettings)
    assert {*sites.names} <= {*cloned_on.names}
    assert (demo.policy.tiny, demo.policy.max_prompt_tokens) == (cloned.policy.tiny, cloned.policy.max_prompt_tokens)
    same = {f.name for f in dataclasses.fields(demo.warm_start)} - {"checkpoint", "clone", "tokenizer_demonstrations"}
    for name in same:
        assert getattr(demo.warm_start, name) == getattr(cloned.warm_start, name), name
