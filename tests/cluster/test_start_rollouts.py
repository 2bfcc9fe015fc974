"""The start policy's own rollouts open the replay buffer and the failure set, where a recipe asks for them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.audit.audit import audit
from cluster.recipe.recipe import identity
from cluster.recorded_run import RecordedRun
from cluster.run_folder.durable import sha256_text
from cluster.run_folder.stage_results import ReplayFiltered, RolloutsPlayed, TasksChosen
from records.episodes import Source
from replay.buffer import ReplayBuffer
from tests.cluster.fake_run import ORDER, Killed, Run, at
from tests.cluster.test_written_milestones import BARE, asked

OPENED: dict[str, Any] = {"warm_start": {"rollout_tasks": 4}, "run": {"attempts_per_task": 2}}
FIRST = [(0, "rollouts"), (0, "curriculum")]
WITH_THEM = [*(stage for stage in ORDER if stage[0] == 0), *FIRST, *(stage for stage in ORDER if stage[0])]


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def outcomes(run: Run, phase: int) -> dict[str, float | None]:
    buffer = ReplayBuffer(run.out / "episodes")
    return {i: buffer.entry(i).outcome for i in run.manifest.result(phase, RolloutsPlayed).episodes}


def test_what_the_start_policy_solves_is_replayed_and_what_it_fails_is_practised(tmp_path: Path) -> None:
    run = Run(tmp_path, **OPENED)
    system = run.start()
    assert run.manifest.stages() == WITH_THEM
    first = [spec for spec in system.specs if spec.source is Source.ROLLOUT and spec.phase == 0]
    assert Counter(spec.group for spec in first).total() == 8
    assert set(Counter(spec.group for spec in first).values()) == {2}
    solved = {i for i, outcome in outcomes(run, 0).items() if outcome == 1.0}
    assert solved
    assert solved < set(outcomes(run, 0)), "some fail"
    assert solved <= set(run.manifest.result(1, ReplayFiltered).kept)
    origins = run.manifest.result(0, TasksChosen).origins
    assert sum(count for name, count in origins.items() if name != "fresh") > 0, origins
    assert audit(run.out).findings == []
    assert set(RecordedRun(run.out).tasks) >= set(outcomes(run, 0))


def test_without_them_phase_1_has_neither_and_the_recipe_is_the_one_of_before(tmp_path: Path) -> None:
    run, named = Run(tmp_path / "default"), Run(tmp_path / "named", warm_start={"rollout_tasks": 0})
    run.start()
    assert run.manifest.stages() == ORDER
    assert run.manifest.result(1, ReplayFiltered).kept == {}
    assert identity(run.recipe) == identity(named.recipe)
    assert "warm_start.rollout_tasks" not in identity(run.recipe)
    assert identity(Run(tmp_path, **OPENED).recipe) != identity(run.recipe)


@pytest.mark.parametrize("moment", range(1, 78, 7))
def test_a_run_cut_short_at_any_request_ends_as_the_one_that_was_not(tmp_path: Path, moment: int) -> None:
    undisturbed, run = Run(tmp_path / "undisturbed", **OPENED), Run(tmp_path / "cut", **OPENED)
    undisturbed.start()
    with pytest.raises(Killed):
        run.start(at(moment))
    played = Counter(spec.episode_id for spec in run.system.specs)
    played.update(spec.episode_id for spec in run.start().specs)
    assert set(played.values()) == {1}, "a finished episode was played again"
    assert run.manifest.stages() == WITH_THEM
    for phase in (0, 1, 2):
        assert outcomes(run, phase) == outcomes(undisturbed, phase)
    assert run.manifest.result(2, ReplayFiltered) == undisturbed.manifest.result(2, ReplayFiltered)
    assert audit(run.out).findings == []


def test_they_are_of_the_newest_weights_where_later_ones_need_not_be(tmp_path: Path) -> None:
    run = Run(tmp_path, **OPENED, rollout={"max_staleness": 1})
    run.start()
    ages = [run.manifest.result(phase, RolloutsPlayed).staleness for phase in (0, 1, 2)]
    assert [set(age) for age in ages] == [{"0"}, {"0"}, {"1"}]
    assert audit(run.out).findings == []


def test_milestones_are_written_for_them_once(tmp_path: Path) -> None:
    run = Run(
        tmp_path,
        **{**OPENED, "run": {**BARE, "attempts_per_task": 2}},
        milestones={"model": "m"},
        curriculum={"tasks_per_phase": 3},
    )
    played = [spec for spec in run.start().specs if spec.source is Source.ROLLOUT and spec.phase == 0]
    assert {len(spec.task.milestones) for spec in played} == {2}
    assert len(asked(run)) == len(set(asked(run))), "each task once"
    assert {spec.task.task_id for spec in played} <= set(asked(run))
    assert audit(run.out).findings == []


def test_the_audit_finds_them_where_other_weights_than_the_start_policys_played(tmp_path: Path) -> None:
    run = Run(tmp_path, **OPENED)
    run.start()
    (record,) = (run.out / "stages").glob("*-phase-000-publish/*.json")
    record.write_text(record.read_text().replace('"version": 0', '"version": 3'))
    (record.parent / "COMPLETE").write_text(sha256_text(record.read_text()) + "\n")
    assert json.loads(record.read_text())
    assert any(finding.part == "training" for finding in audit(run.out).findings)
