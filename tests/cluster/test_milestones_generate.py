"""``waymark milestones generate`` lets a model write milestones for a few tasks, shows them, and keeps nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cluster import cli
from cluster.errors import RecipeError, RunError
from tests.judges.llm_server import Asked, ModelServer, model_server

RUNNER = CliRunner()
RECIPE = """
run: {environment: browserless}
environments: {embedded: {names: [shop]}}
judges: {llm: {models: {m: {model: a-model, base_url: "%s/v1", usd_per_million_input: 10.0}}}}
milestones: {count: 4}
"""


def invoke(server: ModelServer, tmp_path: Path, *options: object) -> str:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE % server.url)
    words = ["milestones", "generate", str(recipe), *map(str, options)]
    done = RUNNER.invoke(cli.app, words, catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def written(asked: Asked) -> str:
    goals = [{"kind": "url", "value": f"__SHOP__/goal{i}"} for i in range(4)]
    return json.dumps(
        {"milestones": [{"description": f"Page {i} is open", "conditions": [g]} for i, g in enumerate(goals)]}
    )


def test_what_a_model_writes_is_shown_beside_what_the_task_brings(tmp_path: Path) -> None:
    before = {path.name for path in tmp_path.iterdir()}
    with model_server(written) as server:
        shown = invoke(server, tmp_path, "--model", "m", "--tasks", 2, "--json", tmp_path / "written.json")
    assert len(server.asked) == 2
    assert all("searchbox Search" in asked.text for asked in server.asked), "the first page is read"
    assert shown.count('4. Page 3 is open  {"url": "__SHOP__/goal3"}') == 2
    assert "its own: " in shown
    assert "2 of 2 tasks have milestones; asking cost 0.02" in shown
    found = json.loads((tmp_path / "written.json").read_text())
    assert len(found["written"]) == 2
    assert {path.name for path in tmp_path.iterdir()} - before == {"recipe.yaml", "written.json"}


def test_a_model_that_writes_none_is_an_error_with_its_reason(tmp_path: Path) -> None:
    with model_server() as server:
        server.say = lambda asked: "no"
        with pytest.raises(RunError, match="no milestones were written"):
            invoke(server, tmp_path, "--model", "m", "--tasks", 1)


def test_a_model_that_is_not_named_and_one_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with model_server(written) as server:
        with pytest.raises(RecipeError, match="name a model"):
            invoke(server, tmp_path)
        with pytest.raises(RecipeError, match="'other'"):
            invoke(server, tmp_path, "--model", "other")
        with pytest.raises(RecipeError, match="split"):
            invoke(server, tmp_path, "--model", "m", "--split", "nowhere")
    assert server.asked == []
