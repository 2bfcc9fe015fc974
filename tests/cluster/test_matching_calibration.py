"""The threshold of matching actions to milestones, calibrated on episodes and from the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cluster import cli
from cluster.errors import RunError
from cluster.milestones import validation
from cluster.milestones.calibration import calibrate_matching
from cluster.milestones.validation import left_out
from judges.of_milestones.checker import Known
from tests.cluster.fake_run import Run
from tests.judges.of_milestones.test_recorded import episode, step

HITS, MISSES = 0.3, 0.1
"""Similarity of the actions that reach their milestone, and of the others: all far below the paper's 0.75."""


class Angles:
    """An encoder of texts that end in a number: the cosine of two is the number of the one that is no milestone."""

    name = "angles"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        numbers = [1.0 if text == "goal" else float(text.split()[-1]) for text in texts]
        return np.array([[x, np.sqrt(1 - x * x)] for x in numbers], dtype=np.float32)


def known(template: str, hits: float = HITS, misses: float = MISSES) -> Known:
    steps = [step('do(action="Click", element="0")', f"link {like}") for like in (misses, misses, hits)]
    reached = np.array([[False], [False], [False], [True]])
    return Known(replace(episode(*steps), template=template), ("goal",), reached)


def templates(held: bool, count: int = 6) -> list[str]:
    names = (f"t{number}" for number in range(1000))
    return [name for name in names if (left_out(name, 5) == 0) is held][:count]


def test_the_threshold_is_chosen_on_some_templates_and_measured_on_others() -> None:
    taught, held = [known(name) for name in templates(held=False)], [known(name) for name in templates(held=True)]
    found = calibrate_matching([*taught, *held], Angles())
    assert MISSES <= found.threshold < HITS
    assert (found.pairs, found.reached, found.taught) == (36, 12, 18)
    assert found.taught_accuracy == 1.0
    assert found.held_out is not None
    assert (found.held_out.value, found.held_out.low, found.held_out.high) == (1.0, 1.0, 1.0)
    assert found.of_paper is not None
    assert found.of_paper.value == 0.5, "nothing is above 0.75"
    assert found.by_threshold[0.2] == 1.0
    assert found.by_threshold[0.75] == 0.5


def test_what_holds_of_the_taught_templates_alone_does_not_of_the_others() -> None:
    other_way = [known(name, hits=MISSES, misses=HITS) for name in templates(held=True)]
    found = calibrate_matching([*(known(name) for name in templates(held=False)), *other_way], Angles())
    assert found.taught_accuracy == 1.0
    assert found.held_out is not None
    assert found.held_out.value == 0.0


def test_nothing_is_told_of_other_templates_where_there_are_none() -> None:
    found = calibrate_matching([known(name) for name in templates(held=False)], Angles())
    assert found.held_out is found.of_paper is found.control is None
    everywhere = calibrate_matching([known(name) for name in templates(held=True)], Angles(), folds=0)
    assert (everywhere.taught, everywhere.held_out) == (18, None)


def test_episodes_that_reach_nothing_calibrate_nothing() -> None:
    never = [Known(known("t1").episode, ("goal",), np.zeros((4, 1), dtype=np.bool_))]
    with pytest.raises(ValueError, match="found 3 alike"):
        calibrate_matching(never, Angles(), folds=0)


def test_the_command_names_the_setting_and_writes_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "known_milestones", lambda run, sources: [known("t1")])
    words = ["milestones", "calibrate", str(tmp_path), "--held-out", "0", "--json", str(tmp_path / "it.json")]
    done = CliRunner().invoke(cli.app, words, catch_exceptions=False)
    assert done.exit_code == 0
    numbers = json.loads((tmp_path / "it.json").read_text())
    assert f"judges.milestone_matching.threshold: {numbers['threshold']:g}" in done.output
    assert "on templates left out: too few templates to tell" in done.output
    assert (numbers["held_out"], numbers["pairs"], numbers["reached"]) == (None, 3, 1)


def test_a_run_whose_actions_all_reach_a_milestone_is_refused_by_name(tmp_path: Path) -> None:
    Run(tmp_path).start()  # made episodes: one action each, which reaches one
    with pytest.raises(RunError, match="expected actions that reach their milestone and others"):
        CliRunner().invoke(cli.app, ["milestones", "calibrate", str(tmp_path)], catch_exceptions=False)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError):
        CliRunner().invoke(cli.app, ["milestones", "calibrate", str(tmp_path)], catch_exceptions=False)
