"""``waymark train`` with rollouts of the next phase begun while the learner works: undisturbed, and killed there."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cluster.audit.audit import audit
from cluster.run_folder.ledger import read_ledger
from cluster.run_folder.metrics_log import read_metrics
from cluster.run_folder.stage_results import ActorTrained, RolloutsPlayed
from rollout_workers.leases import Event
from tests.e2e.command import Run
from tests.e2e.test_train import TINY, assert_done, recipe

pytestmark = [pytest.mark.slow, pytest.mark.lengthy]

RAW: dict[str, Any] = recipe(
    run={**TINY["run"], "phases": 2, "evaluation": {"splits": ["test"], "tasks_per_split": 1, "screenshots": 0}},
    rollout={**TINY["rollout"], "max_staleness": 1},
    curriculum={"tasks_per_phase": 10},
    learner={**TINY["learner"], "actor": {**TINY["learner"]["actor"], "epochs": 8}},
)


def stage_folder(run: Run, phase: int, stage: str) -> Path:
    (found,) = (run.out / "stages").glob(f"*-phase-{phase:03d}-{stage}")
    return found


def versions(run: Run, phase: int) -> dict[str, set[int]]:
    """Which versions decided each rollout of a phase that is counted."""
    counted = run.manifest.result(phase, RolloutsPlayed).episodes
    return {e.episode_id: {step.policy_version for step in e.steps} for e in run.buffer.trajectories(counted)}


def assert_bounded(run: Run) -> Counter[str]:
    """No step of a phase is of weights that are more than one version old, and the record says how old each is."""
    steps: Counter[str] = Counter()
    for phase in (1, 2):
        found = run.manifest.result(phase, RolloutsPlayed)
        for episode in run.buffer.trajectories(found.episodes):
            assert len({step.policy_version for step in episode.steps}) == 1, "one version decides an episode"
        steps = Counter(
            str(phase - 1 - step.policy_version)
            for episode in run.buffer.trajectories(found.episodes)
            for step in episode.steps
        )
        assert dict(steps) == found.staleness
        assert set(steps) <= ({"0"} if phase == 1 else {"0", "1"})
    assert audit(run.out).findings == []
    return steps


def test_rollouts_of_the_second_phase_begin_before_the_learner_has_ended_with_the_first(tmp_path: Path) -> None:
    run = Run(tmp_path, RAW)
    ended = run.run()
    assert_done(ended)
    assert "rollouts of phase 2 were played ahead, by version 0" in ended.output
    steps = assert_bounded(run)
    assert steps["1"] > 0
    told = [line for line in read_metrics(run.out) if (line["phase"], line["stage"]) == (2, "rollouts")]
    assert told[0]["staleness.1"] == steps["1"]
    learned = (stage_folder(run, 1, ActorTrained.stage) / "COMPLETE").stat().st_mtime_ns
    shards = {path.stat().st_mtime_ns for path in run.rollouts(2).values()}
    assert min(shards) < learned, "an episode was durable before the actor had learned"
    lines = [line for line in read_ledger(run.out) if line.stage == RolloutsPlayed.stage]
    assert Counter(line.event for line in lines if line.phase == 2)[Event.COMPLETE] == 10


def test_a_run_killed_while_rollouts_are_ahead_loses_none_that_is_durable_and_adds_up(tmp_path: Path) -> None:
    run = Run(tmp_path, RAW)
    durable: dict[str, Path] = {}

    def kill(driver: subprocess.Popen[str]) -> None:
        os.kill(driver.pid, signal.SIGKILL)
        durable.update(run.rollouts(2))
        assert not run.stage_done(1, ActorTrained.stage), "it was killed too late for this test"

    run.run_until(lambda: run.stage_done(1, "rollouts") and bool(run.rollouts(2)), kill)
    assert durable
    assert_done(run.run())
    assert_bounded(run)
    decided = versions(run, 2)
    assert all(decided[episode_id] == {0} for episode_id in durable)
    leased = Counter(line.episode for line in read_ledger(run.out) if line.event is Event.LEASE and line.start > 1)
    assert not set(durable) & set(leased), "what was durable is not played again"
