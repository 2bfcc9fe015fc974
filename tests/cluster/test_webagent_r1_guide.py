"""Each recipe of the guide on WebAgent-R1 is checked as it stands there, with a small model in the model's place."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.data_import import import_data
from cluster.preflight.start import check_start
from cluster.recipe.recipe import Recipe, build_recipe
from learner.algorithms import resolve
from policy.settings import TINY
from records.checks import Status
from tests.model_families import FAMILIES, save
from tests.offline.made_sources import ANSWERS, conversation, write_json

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "webagent-r1.md"
_BLOCK = re.compile(r"^```yaml\n# (\w+)\.yaml(: r1\.yaml, with)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def recipes() -> dict[str, dict[str, Any]]:
    """The guide's recipes by name; those that say so are laid over the first."""
    found: dict[str, dict[str, Any]] = {}
    for name, over, text in _BLOCK.findall(GUIDE.read_text(encoding="utf-8")):
        sections = yaml.safe_load(text)
        base = found["r1"] if over else {}
        found[name] = base | {key: base.get(key, {}) | settings for key, settings in sections.items()}
    return found


RECIPES = recipes()
EXPECTED = {"r1": (True, True), "zero": (True, False), "cot": (True, True), "plain": (False, True),
            "small": (True, True)}  # fmt: skip
"""Whether replies think, and whether anything is cloned first."""


def test_every_recipe_of_the_guide_is_looked_at() -> None:
    assert list(RECIPES) == list(EXPECTED)
    assert GUIDE.read_text(encoding="utf-8").count("```yaml") == len(EXPECTED)


def on_small_model(name: str, folder: Path) -> Recipe:
    """The recipe with a small model of the named one's family, which has less room."""
    recipe = build_recipe(RECIPES[name])
    if recipe.policy.model == TINY:
        return recipe
    assert "Qwen" in recipe.policy.model
    model = folder / "qwen" if (folder / "qwen").exists() else save(FAMILIES["qwen"], folder / "qwen")
    data = f"warm_start.data={folder / recipe.warm_start.data}" if recipe.warm_start.data else "run.seed=0"
    short = ["policy.max_prompt_tokens=1500", "policy.max_new_tokens=500"]
    return build_recipe(RECIPES[name], [f"policy.model={model}", data, *short])


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recipe_of_the_guide_is_what_it_says_and_passes_its_checks(name: str, tmp_path: Path) -> None:
    whole, recipe = build_recipe(RECIPES[name]), on_small_model(name, tmp_path)
    assert (whole.policy.thinking, whole.clones) == EXPECTED[name]
    assert whole.learner.algorithm == "webagent_r1"
    assert (resolve(whole.learner).needs_groups, whole.run.attempts_per_task > 1) == (True, True)
    if name == "cot":
        assert [check.status for check in check_start(recipe)][-1] is Status.FAIL, "the data is not there yet"
        thoughts = [
            f"<think>step {i}</think><answer>{said.split(chr(10))[-1]}</answer>" for i, said in enumerate(ANSWERS)
        ]
        source = write_json(
            tmp_path / "thoughts.json", [conversation(i, answer=said) for i, said in enumerate(thoughts)]
        )
        report = import_data(recipe, source, recipe.data_path)
        assert (report.steps, report.made_for.thinking) == (3, True)
    told = [check.name for check in check_start(recipe) if check.status is not Status.OK]
    assert told == (["policy.max_new_tokens"] if name == "small" else [])
    if whole.policy.model != TINY:
        assert [check.name for check in check_start(whole) if check.status is Status.FAIL] == (
            ["warm_start.data"] if name == "cot" else []
        )


def test_the_recipes_differ_in_what_the_guide_names_alone() -> None:
    whole = {name: build_recipe(RECIPES[name]) for name in ("r1", "zero", "cot", "plain")}
    for name in ("zero", "cot"):
        assert whole[name].policy == whole["r1"].policy
    assert all(recipe.learner == whole["r1"].learner for recipe in whole.values())
