"""Sites that fail on purpose, under the pool: played again within a budget, and never scored 0.

The pool, its ledger and budget, the worker and the shards are the real ones; in place of Ray, one worker runs on an
event loop in a thread of this process.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from environments.browserless.host import BrowserlessHost
from environments.embedded.kind import BROWSERLESS
from records.episodes import Source
from records.failures import FailureKind
from replay.buffer import ReplayBuffer
from rollout_workers import pool as pool_module
from rollout_workers.leases import Lease
from rollout_workers.pool import RolloutPool, RolloutStopped
from rollout_workers.results import EpisodeAnswer
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec, WorkerConfig
from rollout_workers.worker import RolloutWorker
from rollout_workers.worker_group import Answered
from sites.app import create_app
from sites.faults import FaultSettings
from sites.settings import SitesSettings
from sites.tasks import task_set

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60.0


class HostWithFaults(BrowserlessHost):
    """The sites in this process, with the faults that the settings ask for."""

    async def start(self) -> None:
        self._app = create_app(0, faults=self._settings.faults)


FAULTY = replace(
    BROWSERLESS, host=lambda settings, connection, browser, judge: HostWithFaults(settings, browser, judge)
)


class GroupWithoutRay:
    """One worker in a thread, with the interface of ``WorkerGroup``."""

    losses = orphans_killed = 0
    loop_lag_s = 0.0
    capacity = 4

    def __init__(self, config: WorkerConfig, nodes: object) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._events: queue.Queue[Answered] = queue.Queue()
        self._worker = RolloutWorker(config, "worker-0")
        assert self._run(self._worker.start()).result(WAIT_S).failure is None

    def _run(self, work) -> Future:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def ready(self) -> list[int]:
        return [0]

    def leaving(self) -> dict[int, float]:
        return {}

    def resize(self, count: int) -> None:
        assert count == 1

    def excuse(self) -> None:
        return None

    def tend(self) -> list[Answered]:
        return []

    def poll(self, timeout_s: float) -> list[Answered]:
        try:
            return [self._events.get(timeout=timeout_s)]
        except queue.Empty:
            return []

    def send(self, worker: int, run: str, lease: Lease, spec: EpisodeSpec) -> bool:
        async def play() -> None:
            answer: EpisodeAnswer = await self._worker.play(lease, spec)
            self._events.put(Answered(run, answer))

        self._run(play())
        return True

    def close(self, timeout_s: float) -> None:
        self._run(self._worker.stop()).result(WAIT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()


@pytest.fixture(autouse=True)
def without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "WorkerGroup", GroupWithoutRay)


def config(folder: Path, settings: RolloutSettings, **faults: float) -> WorkerConfig:
    return WorkerConfig(
        shard_dir=str(folder),
        tokenizer=str(ROOT / "cluster" / "recipes" / "tiny-cloned"),
        environment="tests.sites.test_hardness_pool:FAULTY",
        settings=settings,
        options=SitesSettings(faults=FaultSettings(**faults)),
    )


def specs(count: int) -> list[EpisodeSpec]:
    return [
        EpisodeSpec(f"e{i}", task, Source.DEMONSTRATION, 0, i, temperature=0.0)
        for i, task in enumerate(task_set(3, ("shop", "forum"), "train", count))
    ]


def test_episodes_that_meet_server_errors_are_played_again_and_none_is_scored_0(tmp_path: Path) -> None:
    settings = RolloutSettings(
        contexts_per_worker=2, attempts=60, retry_delay_s=0.01, shard_linger_s=0.01, failure_floor=2000
    )
    with RolloutPool(config(tmp_path, settings, error_share=0.05, slow_share=0.05, slow_s=0.05, seed=3)) as pool:
        result = pool.run(specs(24))
    assert result.counts["completed"] == 24
    assert result.attempts > 24
    assert set(result.incidents) == {"infra/site_error"}
    assert result.incidents["infra/site_error"] == result.attempts - 24
    outcomes = [trajectory.outcome for trajectory in ReplayBuffer(tmp_path).trajectories(result.located)]
    assert outcomes == [1.0] * 24, "flawless demonstrators succeed wherever the site answers"


def test_an_episode_that_always_meets_errors_is_reported_as_failed_and_has_no_outcome(tmp_path: Path) -> None:
    settings = RolloutSettings(contexts_per_worker=2, attempts=2, retry_delay_s=0.01, shard_linger_s=0.01)
    with RolloutPool(config(tmp_path, settings, error_share=1.0)) as pool:
        result = pool.run(specs(3))
    assert result.counts["completed"] == 0
    assert {f.kind for f in result.failures.values()} == {FailureKind.INFRA}
    assert len(result.failures) == 3
    assert list(tmp_path.glob("*.arrow")) == []


def test_a_site_that_fails_beyond_the_budget_stops_the_run(tmp_path: Path) -> None:
    settings = RolloutSettings(
        contexts_per_worker=2, retry_delay_s=0.01, shard_linger_s=0.01, failure_floor=4, infra_failure_share=0.1
    )
    with (
        RolloutPool(config(tmp_path, settings, error_share=1.0)) as pool,
        pytest.raises(RolloutStopped, match=r"stopped after 5 infra failures; at most 4 .*site_error x5"),
    ):
        pool.run(specs(8))
