"""``waymark gate`` compares what two folders last evaluated, and its exit code says what it found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cluster import cli
from cluster.errors import ExitCode, ManifestError
from cluster.gate import Regression, TooFewTasks
from records.episodes import Source
from tests.cluster.made_episodes import spec, store

RUNNER = CliRunner()


def evaluated(folder: Path, outcomes: Sequence[float], *, phase: int = 0, horizon: int = 12) -> Path:
    specs = [
        replace(made, source=Source.EVALUATION, phase=phase, episode_id=f"e{phase}-{horizon}-{index}")
        for index, made in enumerate(spec(100 * horizon + index, horizon=horizon) for index in range(len(outcomes)))
    ]
    store(folder / "episodes", specs, outcomes)
    return folder


def gate(*arguments: object) -> str:
    return RUNNER.invoke(cli.app, ["gate", *map(str, arguments)], catch_exceptions=False).output


def test_what_is_as_good_passes_and_is_written_as_json(tmp_path: Path) -> None:
    old = evaluated(tmp_path / "old", [1.0] * 30 + [0.0] * 30)
    new = evaluated(tmp_path / "new", [1.0] * 30 + [0.0] * 30)
    assert "not 10 points worse" in gate(old, new, "--json", tmp_path / "g.json")
    found = json.loads((tmp_path / "g.json").read_text())
    assert (found["verdict"], found["tasks"], found["difference"]["value"]) == ("passed", 60, 0.0)


def test_what_is_worse_is_a_regression_and_short_tasks_do_not_count(tmp_path: Path) -> None:
    old, new = (evaluated(tmp_path / name, [1.0] * 40, horizon=5) for name in ("old", "new"))
    evaluated(old, [1.0] * 30)
    evaluated(new, [1.0] * 15 + [0.0] * 15)
    with pytest.raises(Regression, match=r"50\.0 % against 100\.0 % on 30 tasks"):
        gate(old, new)
    assert Regression.code is ExitCode.FAILED


def test_too_few_tasks_are_refused_with_the_number_that_is_needed(tmp_path: Path) -> None:
    old, new = (evaluated(tmp_path / name, [1.0] * 5) for name in ("old", "new"))
    with pytest.raises(TooFewTasks, match=r"about \d+ are needed"):
        gate(old, new)
    with pytest.raises(TooFewTasks, match="no such task"):
        gate(old, new, "--longer-than", 12)
    assert TooFewTasks.code is ExitCode.MISSING


def test_the_last_evaluation_of_a_run_counts(tmp_path: Path) -> None:
    old = evaluated(tmp_path / "old", [1.0] * 60)
    new = evaluated(evaluated(tmp_path / "new", [0.0] * 60, phase=1), [1.0] * 60, phase=2)
    assert "passed" in gate(old, new)


def test_without_an_expert_a_success_says_how_long_a_task_is(tmp_path: Path) -> None:
    old = evaluated(tmp_path / "old", [1.0] * 60, horizon=0)
    new = evaluated(tmp_path / "new", [0.0] * 60, horizon=0)
    with pytest.raises(Regression):
        gate(old, new, "--longer-than", 0)
    with pytest.raises(TooFewTasks):  # the successes took one step
        gate(old, new, "--longer-than", 1)


def test_a_folder_without_an_evaluation_is_refused(tmp_path: Path) -> None:
    store(tmp_path / "old" / "episodes", [spec(0)], [1.0])
    with pytest.raises(ManifestError, match="holds no evaluation"):
        gate(tmp_path / "old", tmp_path / "old")
