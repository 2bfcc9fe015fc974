"""Row of the recovery matrix: Ray's head is lost in the middle of the rollouts, and comes back with the next start."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from cluster.errors import ExitCode
from cluster.head_watch import HeadWatch
from tests.e2e.command import Run
from tests.e2e.processes import started_with
from tests.e2e.test_train import TINY, recipe

pytestmark = pytest.mark.faults


def test_a_head_that_is_gone_interrupts_the_main_thread_once() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt), HeadWatch("127.0.0.1:1", limit_s=0.1) as watch:
            signal.sigtimedwait([], 60)
    finally:
        signal.signal(signal.SIGINT, before)
    assert watch.lost


@pytest.mark.lengthy
def test_ray_head_lost_ends_the_run_with_the_reason_and_the_same_command_goes_on(tmp_path: Path) -> None:
    run = Run(tmp_path, recipe(run={**TINY["run"], "head_timeout_s": 6.0, "attempts_per_task": 8}))

    def kill_head(_: object) -> None:
        heads = [p for p in started_with("WAYMARK_E2E_COMMAND", run.mark) if "gcs_server" in p.title.split(" ")[0]]
        assert heads
        for head in heads:
            os.kill(head.pid, signal.SIGKILL)

    stopped = run.run_until(lambda: bool(run.out.exists() and run.rollouts(1)), kill_head)
    assert stopped.code == ExitCode.STOPPED, stopped.errors
    assert "Ray's head did not answer" in stopped.output + stopped.errors
    assert "same command again" in " ".join((stopped.output + stopped.errors).split())
    assert stopped.left == []
    finished = run.rollouts(1)
    assert finished

    resumed = run.run()
    assert resumed.code == 0, resumed.errors
    assert resumed.left == []
    after = run.rollouts(1)
    assert {i: after[i] for i in finished} == finished, "what was finished was kept, not played again"
    assert len(after) == TINY["curriculum"]["tasks_per_phase"] * 8
