"""``waymark analyze`` reads run folders, evaluations and folders of shards, and writes what it found into them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cluster import cli
from cluster.errors import ManifestError, RecipeError, RunStopped
from tests.cluster.fake_run import Run
from tests.cluster.made_episodes import spec, store
from tests.judges.llm_server import ModelServer, model_server

RUNNER = CliRunner()


def invoke(*arguments: object) -> str:
    done = RUNNER.invoke(cli.app, ["analyze", *map(str, arguments)], catch_exceptions=False)
    return done.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store(tmp_path / "mine" / "episodes", [spec(0, horizon=1), spec(1, horizon=1), spec(2)], [0.0, 1.0, 0.0])
    return tmp_path / "mine"


def test_a_folder_is_told_and_its_files_say_the_same(folder: Path) -> None:
    shown = invoke(folder)
    found = json.loads((folder / "analysis.json").read_text())
    assert found["everything"]["failures"] == 2
    modes = {failed["episode_id"]: failed["mode"] for failed in found["failed"]}
    assert modes == {"test-0": "wrong termination", "test-2": "no reasonable attempt"}
    assert "rollout 1" in shown
    assert "no reasonable attempt" in (folder / "analysis.html").read_text()


def test_a_folder_of_shards_alone_will_do_and_rules_can_be_set(folder: Path) -> None:
    invoke(folder / "episodes", "--set", "early_steps=1", "--set", "same_actions=9")
    found = json.loads((folder / "episodes" / "analysis.json").read_text())
    assert found["settings"] == {"same_actions": 9, "cycle_repeats": 3, "longest_cycle": 4, "early_steps": 1}


def test_several_runs_are_shown_side_by_side(folder: Path, tmp_path: Path) -> None:
    store(tmp_path / "other" / "episodes", [spec(0)], [0.0])
    shown = invoke(folder, tmp_path / "other", "--page", tmp_path / "both.html")
    assert "side by side" in shown
    assert "other" in (tmp_path / "both.html").read_text()


def test_a_damaged_shard_of_a_run_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = Run(tmp_path / "run")
    run.start()
    shard = next(iter(sorted((run.out / "episodes").glob("*.arrow"))))
    shard.write_bytes(shard.read_bytes()[:-1])
    invoke(run.out)
    (told,) = [message for message in caplog.messages if message.startswith("skipped ")]
    assert told.endswith("delete it; its run, started again, plays again what its stages need of it")


def test_what_cannot_be_analysed_is_refused_with_the_reason(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ManifestError, match="found no"):
        invoke(tmp_path / "nowhere")
    for setting, reason in (
        ("same=3", "--set: unknown key 'same'"),
        ("same_actons=3", "--set: unknown key 'same_actons'; did you mean 'same_actions'[?]"),
        ("same_actions=1", "at least 2"),
        ("same_actions=x", "--set: same_actions: Input should be a valid integer.*, found 'x'"),
        ("same_actions=", "--set: same_actions: Input should be a valid integer.*, found ''"),
        ("same_actions", "--set expects key=value, found 'same_actions'"),
    ):
        with pytest.raises(RecipeError, match=f"^{reason}" if reason.startswith("--") else reason):
            invoke(folder, "--set", setting)


MODELS = """
judges:
  llm:
    models: {m: {model: a-model, base_url: "%s/v1"}}
    budget_tokens: %d
"""


def recipe_of(server: ModelServer, tmp_path: Path, budget: int = 1_000_000) -> Path:
    path = tmp_path / "recipe.yaml"
    path.write_text(MODELS % (server.url, budget))
    return path


def saying(step: int | None, why: str = "It left <b>too</b> early.") -> str:
    return json.dumps({"step": step, "why": why})


def test_a_model_says_why_beside_what_the_rules_found(folder: Path, tmp_path: Path) -> None:
    plain = invoke(folder) and json.loads((folder / "analysis.json").read_text())
    with model_server(lambda asked: saying(1)) as server:
        invoke(folder, "--explain", "m", "--explained", 1, "--recipe", recipe_of(server, tmp_path))
    found = json.loads((folder / "analysis.json").read_text())
    (asked,) = server.asked
    assert "The verdict that the task was not done is certain" in asked.text
    assert "Rules say: wrong termination" in asked.text
    assert "A success at the task" in asked.text, "another task of the template was solved"
    first, second = found["failed"]
    assert (first["explanation"], first["explained_step"]) == ("It left <b>too</b> early.", 0)
    assert second == plain["failed"][1], "one was asked about"
    assert {**first, "explanation": "", "explained_step": None, "explained_by": ""} == plain["failed"][0]
    page = (folder / "analysis.html").read_text()
    assert "It left &lt;b&gt;too&lt;/b&gt; early." in page
    assert (folder / "judging").is_dir(), "what was asked is paid for by the folder's accounts"


def test_an_answer_without_a_step_of_the_episode_is_asked_again_and_then_counted(folder: Path, tmp_path: Path) -> None:
    with model_server(lambda asked: saying(99)) as server:
        shown = invoke(folder, "--explain", "m", "--recipe", recipe_of(server, tmp_path))
    assert len(server.asked) == 4
    assert "could not be used: expected a step from 1 to" in server.asked[-1].text
    assert "2 of 2 failures have no explanation: judge/judge_nonsense" in shown
    assert not any(one["explanation"] for one in json.loads((folder / "analysis.json").read_text())["failed"])


def test_a_spent_budget_and_a_model_that_is_not_there_are_sentences(folder: Path, tmp_path: Path) -> None:
    with model_server(lambda asked: saying(None)) as server:
        recipe = recipe_of(server, tmp_path, budget=10)
        with pytest.raises(RunStopped, match="budget_tokens"):
            invoke(folder, "--explain", "m", "--recipe", recipe)
        assert not (folder / "analysis.json").exists()
        with pytest.raises(RecipeError, match="judges.llm.models \\(m\\), found 'other'"):
            invoke(folder, "--explain", "other", "--recipe", recipe)
    with pytest.raises(RecipeError, match="--recipe"):
        invoke(folder, "--explain", "m")
