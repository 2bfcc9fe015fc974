"""What a command is to write is looked at before it does anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cluster import cli
from cluster.errors import RecipeError

COMMANDS = {
    "eval": ["eval", "recipe.yaml", "--policy", "policy", "--split", "test", "--json"],
    "gate": ["gate", "old", "new", "--json"],
    "analyze": ["analyze", "run", "--page"],
    "milestones validate": ["milestones", "validate", "run", "--json"],
    "milestones calibrate": ["milestones", "calibrate", "run", "--json"],
    "milestones generate": ["milestones", "generate", "recipe.yaml", "--json"],
    "judge train": ["judge", "train", "run", "--out", "model", "--json"],
}


def invoke(*words: str) -> None:
    CliRunner().invoke(cli.app, list(words), catch_exceptions=False)


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_file_that_cannot_be_written_is_told_first(tmp_path: Path, words: list[str]) -> None:
    file = tmp_path / "file"
    file.touch()
    option = words[-1]
    with pytest.raises(
        RecipeError, match=rf"{option}: expected a file to write, found a folder: .*; name a file in it"
    ):
        invoke(*words, str(tmp_path))
    with pytest.raises(RecipeError, match=rf"{option} .*/file/below/it.json: .*/file is no folder; name another place"):
        invoke(*words, str(file / "below" / "it.json"))


def test_what_no_file_can_be_called_is_told_first(tmp_path: Path) -> None:
    evaluation = ["eval", "recipe.yaml", "--policy", "policy", "--split", "test"]
    for option in ("--json", "--out"):
        with pytest.raises(RecipeError, match=rf"{option} .*: file name too long; name another place"):
            invoke(*evaluation, option, str(tmp_path / ("x" * 300)))
    recipe = str(Path(__file__).parents[2] / "cluster" / "recipes" / "laptop.yaml")
    for command in ("train", "check"):
        with pytest.raises(RecipeError, match="--out .*: file name too long; name another place"):
            invoke(command, recipe, "--out", str(tmp_path / ("x" * 300)))


def test_a_new_folder_is_told_first_too(tmp_path: Path) -> None:
    evaluation = ["eval", "recipe.yaml", "--policy", "policy", "--split", "test", "--out"]
    with pytest.raises(RecipeError, match=r"--out .*: is there already; name a folder that is not"):
        invoke(*evaluation, str(tmp_path))
    (tmp_path / "file").touch()
    with pytest.raises(RecipeError, match=r"--out .*: .*/file is no folder"):
        invoke(*evaluation, str(tmp_path / "file" / "kept"))


@pytest.mark.parametrize("command", ["train", "check"])
def test_a_run_folder_that_can_be_none_is_told_by_the_options_name(tmp_path: Path, command: str) -> None:
    file, recipe = tmp_path / "file", tmp_path / "recipe.yaml"
    file.touch()
    recipe.touch()
    for place in (file, file / "run"):
        with pytest.raises(RecipeError, match=rf"^--out {place}: {file} is no folder; name another place$"):
            invoke(command, str(recipe), "--out", str(place))
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(RecipeError, match=r"/link is no folder"):
        invoke(command, str(recipe), "--out", str(tmp_path / "link"))


def test_what_is_not_there_yet_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"recipe.yaml"):
        invoke(
            "eval", "recipe.yaml", "--policy", "policy", "--split", "test", "--json", str(tmp_path / "new" / "it.json")
        )
