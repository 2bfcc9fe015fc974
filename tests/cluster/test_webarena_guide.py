"""The recipe that the documentation gives for the real WebArena is one that its check accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster.preflight.doctor import check_environment_of, check_tasks
from cluster.recipe.recipe import Recipe, build_recipe
from learner.algorithms import resolve
from records.checks import Status
from tests.environments.webarena.guide import recipe_of_the_guide


def task(number: int, evaluation: dict[str, Any]) -> dict[str, Any]:
    return {
        "task_id": number, "sites": ["reddit"], "start_url": "__REDDIT__", "require_login": True,
        "storage_state": "./.auth/reddit_state.json", "geolocation": None, "require_reset": False,
        "intent_template": "What is the title of post {{n}}?", "instantiation_dict": {"n": number},
        "intent": f"What is the title of post {number}?", "intent_template_id": number, "eval": evaluation,
    }  # fmt: skip


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    same = {"eval_types": ["string_match"], "reference_answers": {"exact_match": "A title"}}
    meant = {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["A title"]}}
    files = {"train": range(200), "test": range(1000, 1165)}
    raw = recipe_of_the_guide()
    for split, numbers in files.items():
        tasks = [task(number, meant if number % 2 else same) for number in numbers]
        (tmp_path / f"{split}.json").write_text(json.dumps(tasks))
        raw["environments"]["webarena"]["task_files"][split] = str(tmp_path / f"{split}.json")
    monkeypatch.setenv("REDDIT", "http://127.0.0.1:9999")
    monkeypatch.setenv("REDDIT_USERNAME", "a")
    monkeypatch.setenv("REDDIT_PASSWORD", "b")
    monkeypatch.setenv("GEMINI_API_KEY", "c")
    return build_recipe(raw, ["run.training_tasks=200"])


def test_the_check_refuses_nothing_of_it(recipe: Recipe) -> None:
    checks = [*check_environment_of(recipe), *check_tasks(recipe)]
    assert [check for check in checks if check.status is Status.FAIL] == []
    assert [check.name for check in checks if check.name.startswith("tasks of")] == ["tasks of train", "tasks of test"]


def test_it_evaluates_the_whole_benchmark_and_demonstrates_nothing_of_other_sites(recipe: Recipe) -> None:
    assert recipe.run.evaluation.splits == ("test",)
    assert recipe.run.evaluation.tasks_per_split == 165
    assert recipe.rollout.max_steps == 30
    assert not recipe.clones
    assert resolve(recipe.learner).needs_milestones, "so a model has to write them"
    assert recipe.milestones.model == "flash"
