"""``waymark milestones validate`` and ``train`` from the command line; what they compute has tests of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cluster import cli
from cluster.errors import RecipeError, RunError
from cluster.milestones import validation
from cluster.milestones.validation import PLAYED, SHUFFLED, SourceValidity, validate_milestones
from judges.of_milestones.checker import Known, load_checker
from tests.cluster.fake_run import Run
from tests.judges.of_milestones.test_checker import EPISODES


def called(*words: object) -> Result:
    return CliRunner().invoke(cli.app, ["milestones", *map(str, words)], catch_exceptions=False)


@pytest.fixture
def episodes(monkeypatch: pytest.MonkeyPatch) -> list[Known]:
    """What the run is said to hold."""
    known = list(EPISODES)
    monkeypatch.setattr(validation, "known_milestones", lambda run, sources: known)
    return known


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of made episodes, each of which reaches its one milestone as often as it succeeds."""
    made = Run(tmp_path / "run")
    made.start()
    return made.out


def test_a_checker_is_trained_and_held_against_a_run(tmp_path: Path, episodes: list[Known]) -> None:
    done = called("train", tmp_path, "--out", tmp_path / "checker", "--held-out", 0)
    assert done.exit_code == 0
    assert "milestones validate --checker" in " ".join(done.output.split())
    load_checker(tmp_path / "checker")


def test_templates_that_are_left_out_teach_nothing(tmp_path: Path, episodes: list[Known]) -> None:
    names = (f"t{number}" for number in range(1000))
    held = next(name for name in names if validation.left_out(name, 5) == 0)
    episodes[:] = [replace(one, episode=replace(one.episode, template=held)) for one in episodes]
    with pytest.raises(RunError, match="all 6 episodes are of templates that --held-out 5 leaves out"):
        called("train", tmp_path, "--out", tmp_path / "checker")
    episodes.clear()
    with pytest.raises(RunError, match="expected episodes with milestones, found 0"):
        called("train", tmp_path, "--out", tmp_path / "checker")
    assert not (tmp_path / "checker").exists()


def test_a_runs_milestones_are_accepted_and_bad_ones_told_beside_them(run: Path, tmp_path: Path) -> None:
    done = called("validate", run, "--json", tmp_path / "told.json")
    assert done.exit_code == 0
    told = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert not told[PLAYED]["validity"]["rejected"]
    assert told[SHUFFLED]["validity"]["rejected"]


def test_milestones_that_say_nothing_of_success_are_rejected(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shuffled(*words: Any) -> list[SourceValidity]:
        return [replace(one, source=PLAYED) for one in validate_milestones(*words) if one.source == SHUFFLED]

    monkeypatch.setattr(validation, "validate_milestones", shuffled)
    with pytest.raises(RunError, match="are rejected, see above"):
        called("validate", run)


def test_a_checker_that_is_not_there_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="expected a checker that `waymark milestones train` made"):
        called("validate", tmp_path / "no run", "--checker", tmp_path / "nothing")


@pytest.mark.parametrize("words", [("validate",), ("train", "--out", "checker")])
def test_a_folder_without_a_run_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(RunError):
        called(words[0], tmp_path, *words[1:])
