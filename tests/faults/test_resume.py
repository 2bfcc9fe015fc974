"""``waymark train``, its driver killed again and again, gives the run that would have been: bit for bit.

Tiny runs of the real command with real processes; ``benchmarks/resume.py`` does the same at 20 points.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.resume import Kill, KillPoint, half_written, kill_at, kill_points
from benchmarks.runs import RecordedRun
from benchmarks.same_runs import Comparison
from cluster.audit.audit import audit
from cluster.run_folder.starts import start_files
from tests.cluster.made_results import every_stage
from tests.e2e.command import MARK, Ended, Run
from tests.e2e.processes import Process, left_after, started_with
from tests.e2e.test_train import TINY, assert_done, recipe

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.lengthy]

AGENTS = {"ray::DashboardAgent", "ray::RuntimeEnvAgent"}
"""They wait a minute for the head that was killed with the driver, and end then (docs/decisions/0096)."""
STAGES = every_stage(1)


def point(phase: int, stage: str, *, share: float = 0.0, in_write: bool = False) -> KillPoint:
    return KillPoint(phase, stage, STAGES.index((phase, stage)), share, in_write)


@dataclass(frozen=True)
class Killed:
    """A run that nothing disturbed, and one whose driver was killed three times and whose folder was moved."""

    undisturbed: Run
    run: Run
    kills: list[Kill]
    ended: Ended


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    raw = recipe(policy={**TINY["policy"], "options": {"batch_invariant": True}})
    undisturbed = Run(tmp_path_factory.mktemp("undisturbed"), raw)
    assert_done(undisturbed.run())
    run = Run(tmp_path_factory.mktemp("killed"), raw)
    kills = [kill(run, point(1, "rollouts", share=0.5)), kill(run, point(1, "critics", in_write=True))]
    moved = Run(tmp_path_factory.mktemp("moved"), raw)
    shutil.copytree(run.out, moved.out)
    shutil.rmtree(run.out)
    kills.append(kill(moved, point(1, "publish")))
    return Killed(undisturbed, moved, kills, moved.run())


def kill(run: Run, at: KillPoint) -> Kill:
    """Kill the driver; what it leaves must not be taken for something that the next start of the command left."""
    with run.start() as process:
        found = kill_at(process, run.out, at, seconds=2.0)
    ends = time.monotonic() + 30
    while (others := rest_of(run)) and time.monotonic() < ends:
        time.sleep(0.1)
    assert others == []
    left_after(MARK, run.mark, seconds=0)
    return found


def rest_of(run: Run) -> list[Process]:
    """The processes of the command that are there, but for Ray's agents."""
    return [process for process in started_with(MARK, run.mark) if process.title not in AGENTS]


def test_it_was_killed_where_it_should_be(killed: Killed) -> None:
    before_or_at = [{"evaluate", "rollouts"}, {"replay", "critics"}, {"actor", "publish"}]  # a stage may end just then
    for found, stages in zip(killed.kills, before_or_at, strict=True):
        assert found.complete.rpartition("-")[2] in stages
    assert len(start_files(killed.run.out)) == 4


def test_the_same_command_goes_on_to_the_end_and_leaves_nothing_half_written(killed: Killed) -> None:
    assert_done(killed.ended)
    assert half_written(killed.run.out) == []


def test_the_killed_run_is_the_same_bit_for_bit(killed: Killed) -> None:
    found = Comparison.of(RecordedRun(killed.undisturbed.out), RecordedRun(killed.run.out))
    assert found.examples == []
    assert found.compared["steps: log-probabilities"] > 50
    assert found.compared["files of the last checkpoint"] == 6, "actor, two critics and their optimisers"
    assert found.compared["published weights"] == 2
    assert found.compared["losses"] > 3


def test_both_runs_add_up(killed: Killed) -> None:
    for run in (killed.undisturbed, killed.run):
        assert audit(run.out).findings == []


@pytest.mark.parametrize("seed", range(3))
def test_points_are_spread_over_all_stages_in_order(killed: Killed, seed: int) -> None:
    points = kill_points(RecordedRun(killed.undisturbed.out), 14, seed)
    assert {(p.phase, p.stage) for p in points} == set(STAGES)
    assert [p.number for p in points] == sorted(p.number for p in points)


def test_a_comparison_finds_what_differs(killed: Killed, tmp_path: Path) -> None:
    other = shutil.copytree(killed.run.out, tmp_path / "other")
    path = other / "trained" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert Comparison.of(RecordedRun(killed.run.out), RecordedRun(other)).examples == ["trained: trained policy"]
