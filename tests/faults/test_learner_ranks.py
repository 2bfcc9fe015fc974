"""``waymark train`` with a learner of two ranks, one of which is killed while it clones: the run goes on by itself.

What is learned is what two ranks learn that nobody disturbs, bit for bit.
"""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from cluster.audit.audit import audit
from cluster.run_folder.layout import RunFolders
from cluster.run_folder.stage_results import Cloned
from tests.e2e.command import MARK, Ended, Run
from tests.e2e.processes import started_with
from tests.e2e.test_train import TINY, assert_done, recipe

pytestmark = [pytest.mark.faults, pytest.mark.slow, pytest.mark.lengthy]

LEARNER = {**TINY["learner"], "ranks": 2, "bookmark_every_s": 0.1}
RAW = recipe(
    run={**TINY["run"], "resources": {"learner_cpus": 0.25}},
    learner=LEARNER,
    policy={**TINY["policy"], "options": {"batch_invariant": True}},
)


def kill_a_rank(run: Run) -> Ended:
    """Kill the learner's youngest process as soon as cloning has left a bookmark."""

    def kill(process: subprocess.Popen[str]) -> None:
        ranks = [found.pid for found in started_with(MARK, run.mark) if "LearnerActor" in found.title]
        assert len(ranks) == 2
        os.kill(max(ranks), signal.SIGKILL)

    return run.run_until(lambda: bool(RunFolders(run.out).bookmarked()), kill)


def test_a_killed_rank_costs_no_more_than_a_fresh_start_of_the_processes(tmp_path: Path) -> None:
    undisturbed, run = Run(tmp_path / "undisturbed", RAW), Run(tmp_path / "killed", RAW)
    ended = kill_a_rank(run)
    assert_done(ended)
    assert "Lost: the learner's rank" in ended.output
    assert "All processes are started afresh (1 of run.recoveries 3 in a row)" in ended.output
    assert not audit(run.out).findings
    assert not RunFolders(run.out).bookmarked()
    assert_done(undisturbed.run())
    ours, others = (one.manifest.result(0, Cloned).metrics for one in (run, undisturbed))
    assert ours is not None
    assert others is not None
    assert (ours.loss, ours.updates, ours.epochs) == (others.loss, others.updates, others.epochs)
    one, other = (load_file(folder.out / "trained" / "model.safetensors") for folder in (run, undisturbed))
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)
