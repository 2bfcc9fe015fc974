"""``waymark analyze`` reads run folders, evaluations and folders of shards, and writes what it found into them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cluster import cli
from cluster.errors import ManifestError, RecipeError
from tests.cluster.made_episodes import spec, store

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


def test_what_cannot_be_analysed_is_refused_with_the_reason(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(ManifestError, match="found no"):
        invoke(tmp_path / "nowhere")
    for setting, reason in (("same=3", "same"), ("same_actions=1", "at least 2"), ("same_actions=x", "invalid")):
        with pytest.raises(RecipeError, match=reason):
            invoke(folder, "--set", setting)
