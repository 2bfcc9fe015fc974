"""The pool over real Ray actors: nothing is lost, nothing is counted twice, and it stops when it should."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import ray

from environments.environment import Grant
from environments.webarena.leases.units import SiteLease
from records.episodes import Task
from records.failures import Failure, FailureKind
from replay.buffer import ReplayBuffer
from rollout_workers.pool import RolloutPool, RolloutStopped
from rollout_workers.results import RolloutCounts
from rollout_workers.settings import RolloutSettings
from tests.e2e.processes import runs
from tests.rollout_workers.fake_world import browsers, config, spec
from tests.rollout_workers.ray_cluster import small_ray

SETTINGS = RolloutSettings(
    workers=2,
    contexts_per_worker=2,
    prefetch_per_worker=1,
    worker_cpus=0.1,
    shard_linger_s=0.05,
    retry_delay_s=0.05,
    start_timeout_s=240.0,
    stall_timeout_s=240.0,
)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests leave to their guards for a moment is not counted here."""
    monkeypatch.setattr("rollout_workers.pool.SWEEP_GRACE_S", 20.0)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with small_ray():
        yield


def test_every_episode_is_played_once_and_lies_in_its_shard(tmp_path: Path) -> None:
    told: list[RolloutCounts] = []
    with RolloutPool(config(tmp_path, SETTINGS)) as pool:
        result = pool.run([spec(i, "together") for i in range(12)], told.append)
        mapped = [Path(f"/proc/{pid}/maps").read_text() for pid in pool.process_ids().values()]
    assert not any("libtorch" in libraries for libraries in mapped), "a rollout worker has loaded torch"
    assert result.counts == {"total": 12, "dispatched": 12, "completed": 12, "failed": 0, "not_dispatched": 0}
    assert result.attempts == 12
    buffer = ReplayBuffer(tmp_path / "shards")
    assert buffer.ids() == tuple(sorted(result.located)) == tuple(sorted(f"e{i}" for i in range(12)))
    assert {t.episode_id: t.outcome for t in buffer.trajectories(buffer.ids())} == {f"e{i}": 1.0 for i in range(12)}
    assert set(result.shards) == {str(path) for path in (tmp_path / "shards").glob("*.arrow")}
    assert (result.env_steps, result.successes, result.orphans) == (24, 12, 0)
    assert result.env_steps_per_s > 0
    assert told[-1].completed == 12
    assert [p.completed for p in told] == sorted(p.completed for p in told)
    assert {summary.worker for summary in result.summaries} == {"worker-0", "worker-1"}


def test_a_shard_is_told_before_its_episode_counts_and_however_the_run_ends(tmp_path: Path) -> None:
    shards: list[str] = []
    strict = replace(SETTINGS, attempts=1, failure_floor=0, infra_failure_share=0.0)
    specs = [spec(0), spec(1, delay_s=0.2), spec(2, "infra", delay_s=10.0)]
    behind: list[int] = []
    with (
        RolloutPool(config(tmp_path, strict), on_shard=shards.append) as pool,
        pytest.raises(RolloutStopped) as stopped,
    ):
        pool.run(specs, lambda counts: behind.append(counts.completed - len(shards)))
    assert stopped.value.result.located
    assert sorted(set(shards)) == sorted(set(stopped.value.result.located.values()))
    assert max(behind) <= 0


def test_failed_attempts_are_repeated_and_lasting_failures_are_reported_not_scored(tmp_path: Path) -> None:
    specs = [spec(0), spec(1, "infra"), spec(2, "infra", times=9), spec(3, "task"), spec(4, "bug")]
    with RolloutPool(config(tmp_path, SETTINGS)) as pool:
        result = pool.run(specs)
    assert set(result.located) == {"e0", "e1", "e4"}
    assert {i: f.kind for i, f in result.failures.items()} == {"e2": FailureKind.INFRA, "e3": FailureKind.TASK}
    assert result.incidents == {"infra/as_asked": 4, "infra/unexpected": 1, "task/as_asked": 1}
    assert result.attempts == 1 + 2 + SETTINGS.attempts + 1 + 2
    assert ReplayBuffer(tmp_path / "shards").ids() == ("e0", "e1", "e4")


class OneAtATime:
    """An admission that lets one episode play at a time."""

    def __init__(self) -> None:
        self.queue: list[str] = []
        self.held: SiteLease | None = None
        self.released: list[tuple[frozenset[str], bool]] = []

    def ask(self, request: str, task: Task) -> None:
        if request not in self.queue:
            self.queue.append(request)

    def decided(self, most: int) -> dict[str, Grant | Failure]:
        if self.held is not None or not (self.queue and most):
            return {}
        self.held = SiteLease(len(self.released), {"shop": "a"}, frozenset(), {"a": "0"})
        return {self.queue.pop(0): self.held}

    def withdraw(self, request: str) -> None:
        self.queue.remove(request)

    def release(self, grant: Grant, *, lost: bool = False) -> None:
        assert isinstance(grant, SiteLease)
        assert self.held is not None
        assert grant.lease_id == self.held.lease_id
        self.held = None
        self.released.append((frozenset(grant.wrote), lost))


def test_an_episode_goes_out_with_its_grant_which_comes_back_with_the_answer_or_is_lost_with_the_worker(
    tmp_path: Path,
) -> None:
    admission = OneAtATime()
    with RolloutPool(config(tmp_path, SETTINGS), admission) as pool:
        result = pool.run([spec(0), spec(1, "die"), spec(2, "infra")])
    assert result.counts["completed"] == 3
    assert sorted(admission.released, key=str) == sorted(
        [*[(frozenset({"shop"}), False)] * 4, (frozenset(), True)], key=str
    ), "four attempts noted what they wrote, and one died with its worker"
    assert (admission.held, admission.queue) == (None, [])


def test_a_worker_that_dies_is_brought_back_and_its_episodes_are_played_again(tmp_path: Path) -> None:
    one = replace(SETTINGS, workers=1)
    with RolloutPool(config(tmp_path, one)) as pool:
        result = pool.run([spec(0, "die"), *(spec(i, delay_s=0.05) for i in range(1, 6))])
    assert result.counts["completed"] == 6
    assert result.worker_losses == 1
    assert result.incidents == {"infra/worker_died": 1}
    assert len(browsers(tmp_path)) == 2
    assert not runs(browsers(tmp_path)[0])


def test_a_frozen_worker_is_killed_and_replaced(tmp_path: Path) -> None:
    settings = replace(SETTINGS, workers=1, hang_timeout_s=3.0, attempts=10)
    with RolloutPool(config(tmp_path, settings)) as pool:
        result = pool.run([spec(0, "freeze"), spec(1), spec(2)])
    assert result.counts["completed"] == 3
    assert set(result.incidents) == {"infra/worker_hung"}  # a busy machine may take the new worker for hung as well


@pytest.mark.faults
def test_a_stopped_process_is_replaced_although_it_cannot_even_be_killed_politely(tmp_path: Path) -> None:
    settings = replace(SETTINGS, workers=1, hang_timeout_s=3.0, replace_after_s=2.0, attempts=10)
    with RolloutPool(config(tmp_path, settings)) as pool:
        pool.run([spec(100)])
        (process,) = pool.process_ids().values()
        os.kill(process, signal.SIGSTOP)
        try:
            result = pool.run([spec(i) for i in range(3)])
        finally:
            _kill(process)
    assert result.counts["completed"] == 3
    assert set(result.incidents) == {"infra/worker_hung"}  # a busy machine may take the new worker for hung as well


def test_a_run_stops_with_a_reason_when_its_budget_is_used_up(tmp_path: Path) -> None:
    settings = replace(SETTINGS, failure_floor=2, task_failure_share=0.0)
    with RolloutPool(config(tmp_path, settings)) as pool:
        with pytest.raises(RolloutStopped, match=r"3 task failures; at most 2 .*as_asked") as stopped:
            pool.run([*(spec(i, "task") for i in range(3)), *(spec(i, delay_s=30) for i in range(3, 30))])
        counts = stopped.value.result.counts
        assert counts["completed"] + counts["failed"] + counts["not_dispatched"] == 30
        assert counts["failed"] >= 3
        assert counts["not_dispatched"] > 0


def test_a_browser_that_cannot_start_stops_the_run_with_its_reason(tmp_path: Path) -> None:
    worker_config = config(tmp_path, replace(SETTINGS, failure_floor=3, infra_failure_share=0.0))
    (tmp_path / "scratch" / "no_browser").touch()
    with RolloutPool(worker_config) as pool, pytest.raises(RolloutStopped, match="no browser is installed here"):
        pool.run([spec(0)])


def test_without_resources_the_run_says_what_it_waits_for(tmp_path: Path) -> None:
    settings = replace(SETTINGS, worker_cpus=64.0, start_timeout_s=1.0)
    with (
        RolloutPool(config(tmp_path, settings)) as pool,
        pytest.raises(RolloutStopped, match="64 free CPUs") as stopped,
    ):
        pool.run([spec(0)])
    assert stopped.value.result.counts["not_dispatched"] == 1


def test_answers_to_a_stopped_run_do_not_enter_the_next(tmp_path: Path) -> None:
    settings = replace(SETTINGS, workers=1, failure_floor=0, task_failure_share=0.0)
    with RolloutPool(config(tmp_path, settings)) as pool:
        with pytest.raises(RolloutStopped):
            pool.run([spec(0, delay_s=0.5), spec(1, "task")])
        result = pool.run([spec(0), spec(2, delay_s=0.8)])
    assert result.counts["completed"] == 2
    assert (result.attempts, result.late_answers) == (2, 0), result.incidents


def test_nothing_to_play_is_no_work(tmp_path: Path) -> None:
    with RolloutPool(config(tmp_path, SETTINGS)) as pool:
        assert pool.run([]).counts["total"] == 0


def test_closing_ends_workers_and_browsers(tmp_path: Path) -> None:
    pool = RolloutPool(config(tmp_path, SETTINGS))
    pool.run([spec(0), spec(1)])
    processes = [*pool.process_ids().values(), *browsers(tmp_path)]
    pool.close()
    pool.close()
    ends = time.monotonic() + 10
    while any(runs(pid) for pid in processes) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not [pid for pid in processes if runs(pid)]
    assert ray.is_initialized()


def _kill(pid: int) -> None:
    if runs(pid):
        os.kill(pid, signal.SIGKILL)
