"""summary.json holds what it promises."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from pathlib import Path

import pytest

from analysis.results import EpisodeCounts, GroupResult, PhaseSummary, ReplayResult, SplitResult
from cluster.errors import ManifestError
from cluster.run_folder.played_results import NO_EPISODES
from cluster.run_folder.stage_results import Evaluated, read_result
from cluster.run_folder.summary import RunSummary, read_summary, write_summary
from records import failure_codes as codes
from records.episodes import Source, Termination, Trajectory
from records.failures import Failure


def episode(task: str, outcome: float | None) -> Trajectory:
    failure = Failure(codes.BROWSER_CRASHED) if outcome is None else None
    return Trajectory(
        episode_id="e", task_id=task, template="shop.buy", site="shop", split="test", intent="", phase=0, seed=0,
        source=Source.EVALUATION, steps=(), termination=Termination.EXIT, answer=None, outcome=outcome,
        failure=failure, horizon=4,
    )  # fmt: skip


def full_summary() -> RunSummary:
    evaluation = {"test": SplitResult.of([episode("a", 1.0), episode("a", 0.0), episode("b", None)], passes=2)}
    phase = PhaseSummary(
        1, evaluation, GroupResult(0.4, 10, 0.2, 0.7), ReplayResult(3, 2, {"too certain": 2}), {"actor": 0.1},
        {"rollouts": 9.0}, 44.0,
    )  # fmt: skip
    counts = EpisodeCounts(3, 2, {"infra/browser_crashed": 1})
    return RunSummary("r", "ab", {"run": 0}, {"torch": "2"}, (PhaseSummary(0), phase), counts, True, 12.0)


def test_a_split_result_counts_lost_episodes_apart_and_gives_pass_at_k() -> None:
    result = SplitResult.of([episode("a", 1.0), episode("a", 0.0), episode("b", None)], passes=2)
    assert (result.success, result.n, result.lost) == (0.5, 2, {"infra/browser_crashed": 1})
    assert result.pass_at == {"1": 0.5, "2": 1.0}
    assert SplitResult.of([episode("a", 1.0)]).pass_at == {}
    assert result.by_horizon["1-5"].n == 2


def test_a_split_without_a_verdict_has_no_rate() -> None:
    result = SplitResult.of([episode("a", None)], passes=2)
    assert result.success is None
    assert result.pass_at == {}


def test_a_split_result_survives_json() -> None:
    result = full_summary().phases[1].evaluation["test"]
    evaluated = Evaluated(**vars(NO_EPISODES), splits={"test": result})
    assert read_result(0, Evaluated.stage, json.loads(json.dumps(evaluated.to_json()))) == evaluated


def test_episode_counts_add_up_or_are_refused() -> None:
    with pytest.raises(ValueError, match="5 episodes were dispatched but 4 are accounted for"):
        EpisodeCounts(5, 3, {"infra/x": 1})
    total = EpisodeCounts(3, 2, {"a": 1}) + EpisodeCounts(4, 2, {"a": 1, "b": 1})
    assert total == EpisodeCounts(7, 4, {"a": 2, "b": 1})


def test_the_summary_file_holds_the_documented_schema(tmp_path: Path) -> None:
    write_summary(tmp_path, full_summary())
    data = read_summary(tmp_path)
    assert data["episodes"] == {"dispatched": 3, "completed": 2, "by_failure": {"infra/browser_crashed": 1}}
    assert data["phases"][0]["rollout"] is None
    assert data["phases"][1]["evaluation"]["test"]["by_site"]["shop"]["n"] == 2


def test_every_key_of_the_schema_is_documented() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "summary.md").read_text()
    keys = set(full_summary().to_json()) | {"dispatched", "completed", "by_failure"}
    for record in (PhaseSummary, SplitResult, GroupResult, ReplayResult):
        keys |= {field.name for field in fields(record)}
    assert {key for key in keys if f"`{key}`" not in page} == set()


def test_what_json_cannot_hold_becomes_null(tmp_path: Path) -> None:
    phase = PhaseSummary(0, losses={"value": math.nan, "actor": math.inf})
    write_summary(tmp_path, RunSummary("r", "h", {}, {}, (phase,), EpisodeCounts()))
    assert read_summary(tmp_path)["phases"][0]["losses"] == {"value": None, "actor": None}


def test_reading_a_missing_or_newer_summary_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot read"):
        read_summary(tmp_path)
    (tmp_path / "summary.json").write_text('{"schema": 99}')
    with pytest.raises(ManifestError, match="expected summary schema 1, found 99"):
        read_summary(tmp_path)
