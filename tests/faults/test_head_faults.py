"""Row of the recovery matrix: Ray's head is lost in the middle of the rollouts; the run starts another."""

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


def test_a_head_watch_that_was_stopped_interrupts_nobody() -> None:
    with HeadWatch("127.0.0.1:1", limit_s=0.0) as watch:
        watch.stop()
    assert not watch.lost
    assert not watch.answers()


@pytest.mark.lengthy
def test_a_run_whose_head_is_lost_goes_on_by_itself_and_keeps_what_was_finished(tmp_path: Path) -> None:
    run = Run(tmp_path, recipe(run={**TINY["run"], "head_timeout_s": 6.0, "attempts_per_task": 8}))

    def kill_head(_: object) -> None:
        heads = [p for p in started_with("WAYMARK_E2E_COMMAND", run.mark) if "gcs_server" in p.title.split(" ")[0]]
        assert heads
        for head in heads:
            os.kill(head.pid, signal.SIGKILL)

        finished.update(run.rollouts(1))

    finished: dict[str, Path] = {}
    ended = run.run_until(lambda: bool(run.out.exists() and run.rollouts(1)), kill_head)
    assert ended.code == ExitCode.OK, ended.errors
    assert "Lost: Ray's head does not answer" in ended.output
    assert [left for left in ended.left if not left.title.endswith("Agent")] == [], "Ray's agents take a minute more"
    assert finished
    after = run.rollouts(1)
    assert {i: after[i] for i in finished} == finished, "what was finished was kept, not played again"
    assert len(after) == TINY["curriculum"]["tasks_per_phase"] * 8
