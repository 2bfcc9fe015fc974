"""Rows of the recovery matrix: a worker killed, frozen, stopped for a moment, and removed for good.

Flawless episodes without a browser: whatever is not 1.0 at the end was an accident that was scored.
"""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import ray

from rollout_workers.pool import RolloutPool
from rollout_workers.settings import RolloutSettings
from tests.e2e.processes import runs
from tests.faults.books import Books, outcomes
from tests.rollout_workers.fake_world import browsers, config, spec

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("cluster")]

EPISODES = 12
SETTINGS = RolloutSettings(
    workers=2,
    contexts_per_worker=2,
    prefetch_per_worker=1,
    worker_cpus=0.1,
    attempts=6,
    shard_linger_s=0.05,
    retry_delay_s=0.05,
    hang_timeout_s=60.0,
    start_timeout_s=600.0,
    stall_timeout_s=600.0,
)
SPECS = [spec(i, delay_s=1.0) for i in range(EPISODES)]


def test_worker_sigkill_costs_time_only(tmp_path: Path) -> None:
    worker_config = config(tmp_path, SETTINGS)
    with RolloutPool(worker_config) as pool:
        books = Books(pool, lambda: os.kill(books.playing_process(), signal.SIGKILL))
        result = books.play(SPECS)
    books.say("worker SIGKILL")
    assert books.left_behind() == []
    assert result.counts["completed"] == EPISODES
    assert result.incidents["infra/worker_died"] >= 1
    assert set(outcomes(worker_config.shard_dir, result)) == {1.0}
    assert not any(map(runs, browsers(tmp_path)))


def test_worker_frozen_by_sigstop_is_killed_and_brought_back(tmp_path: Path) -> None:
    worker_config = config(tmp_path, replace(SETTINGS, hang_timeout_s=8.0))
    frozen: list[int] = []

    def freeze() -> None:
        frozen.append(books.playing_process())
        os.kill(frozen[0], signal.SIGSTOP)

    with RolloutPool(worker_config) as pool:
        books = Books(pool, freeze)
        result = books.play(SPECS)
    books.say("worker frozen (SIGSTOP), limit 8 s")
    assert books.left_behind() == []
    assert result.counts["completed"] == EPISODES
    assert result.incidents["infra/worker_hung"] >= 1
    assert set(outcomes(worker_config.shard_dir, result)) == {1.0}
    assert not any(map(runs, frozen))
    assert not any(map(runs, browsers(tmp_path)))


def test_worker_that_stood_still_for_a_moment_plays_what_it_had_again(tmp_path: Path) -> None:
    worker_config = config(tmp_path, replace(SETTINGS, workers=1, loop_lag_limit_s=4.0))

    def stop_for_a_moment() -> None:
        pid = books.playing_process()
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(6.0, os.kill, (pid, signal.SIGCONT)).start()

    long = [spec(i, delay_s=4.0) for i in range(6)]
    with RolloutPool(worker_config) as pool:
        books = Books(pool, stop_for_a_moment, pause_s=1.5)
        result = books.play(long)
    books.say("worker stopped for 6 s, limit 4 s")
    assert books.left_behind() == []
    assert result.counts["completed"] == len(long)
    assert result.worker_losses == 0
    assert result.incidents["infra/worker_stalled"] >= 1
    assert all(code.startswith("infra/") for code in result.incidents)
    assert result.loop_lag_s > 4.0
    assert set(outcomes(worker_config.shard_dir, result)) == {1.0}


def test_worker_removed_in_the_middle_of_an_episode_is_replaced_at_once(tmp_path: Path) -> None:
    """Ray does not bring back what it was told to remove, nor what ran on a node that has gone: a new one starts."""
    worker_config = config(tmp_path, replace(SETTINGS, replace_after_s=10_000.0))
    removed: list[int] = []

    def remove() -> None:
        worker = books.player()
        removed.append(pool.process_ids()[worker])
        ray.kill(pool._group._manager.actors()[worker], no_restart=True)

    with RolloutPool(worker_config) as pool:
        books = Books(pool, remove)
        result = books.play(SPECS)
        ready = pool.process_ids()
    books.say("worker removed (drain)")
    assert books.left_behind() == []
    assert removed[0] not in ready.values()
    assert result.counts["completed"] == EPISODES
    assert result.worker_losses >= 1
    assert {summary.worker for summary in result.summaries} <= {"worker-0", "worker-1", "worker-2"}
    assert set(outcomes(worker_config.shard_dir, result)) == {1.0}
