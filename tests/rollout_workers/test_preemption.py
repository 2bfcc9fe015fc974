"""Nodes that go away cost no attempt and nothing of the budget; the fleet shrinks and grows."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.node_watch import NodeWatch
from cluster.placement import ROLES, Demand
from records import failure_codes as codes
from records.failures import Failure, FailureKind
from rollout_workers.leases import EpisodeLedger, EpisodeState, Event, Lease
from rollout_workers.pool import RolloutPool
from rollout_workers.results import RolloutResult
from rollout_workers.settings import RolloutSettings
from tests.e2e.processes import runs
from tests.rollout_workers.fake_world import config, spec
from tests.rollout_workers.ray_cluster import small_ray
from tests.rollout_workers.test_pool import SETTINGS

STRICT = replace(SETTINGS, attempts=1, failure_floor=0, infra_failure_share=0.0, policy_failure_share=0.0)
"""Whatever counts as an attempt or a failure fails the test."""
LIMIT_S = 200.0


class FakeNodes:
    """One machine that is told to go, is gone, or has no policy."""

    def __init__(self) -> None:
        self.notice_s: float | None = None
        self.is_gone: bool | None = False
        self.no_policy = ""

    def leaves_at(self, node: str) -> float | None:
        return None if self.notice_s is None else self.notice_s

    def gone(self, node: str) -> bool | None:
        return self.is_gone

    def told_to_end(self, process: str) -> bool | None:
        return False

    def held_up(self) -> str:
        return self.no_policy

    def waiting(self, role: str) -> int:
        return 0

    def check(self, role: str) -> None:
        return None


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    with small_ray():
        yield


def played(
    pool: RolloutPool, count: int, meanwhile: Callable[[Callable[[], int]], None], delay_s: float
) -> RolloutResult:
    """Play episodes while something happens; ``meanwhile`` is told how many are complete."""
    done, results = [0], []
    specs = [spec(i, delay_s=delay_s) for i in range(count)]
    thread = threading.Thread(
        target=lambda: results.append(pool.run(specs, lambda counts: done.__setitem__(0, counts.completed)))
    )
    thread.start()
    meanwhile(lambda: done[0])
    thread.join(LIMIT_S)
    assert results, "the run did not end, or by an error"
    return results[0]  # type: ignore[no-any-return]


def wait_until(done: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_an_episode_that_is_handed_back_keeps_its_attempts_and_is_next() -> None:
    told: list[tuple[Event, int]] = []
    ledger = EpisodeLedger(
        ["a", "b"], max_attempts=2, journal=lambda event, lease, failure: told.append((event, lease.attempt))
    )
    lost = Failure(codes.PREEMPTED)
    for attempt in range(1, 6):
        lease = ledger.lease_one(7, "a")
        assert lease == Lease("a", attempt, 7)
        assert ledger.hand_back(lease, lost)
        assert not ledger.hand_back(lease, lost), "only who has the lease"
        assert list(ledger.pending()) == ["a", "b"], "it is next, without a pause"
    assert ledger.fail(ledger.lease_one(7, "a"), Failure(codes.WORKER_DIED)) is EpisodeState.PENDING
    assert ledger.fail(ledger.lease_one(7, "a"), Failure(codes.WORKER_DIED)) is EpisodeState.FAILED, "two that count"
    assert told.count((Event.LEASE, 3)) == told.count((Event.REQUEUE, 3)) == 1, "each attempt has one end"


def test_a_minimum_is_at_most_the_maximum() -> None:
    assert RolloutSettings(workers=2, workers_min=0).workers_min == 0
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match=r"workers_min.*from 0 to rollout.workers \(2\)"):
            RolloutSettings(workers=2, workers_min=wrong)


def test_a_worker_whose_node_has_notice_finishes_and_another_takes_its_place(cluster: None, tmp_path: Path) -> None:
    nodes, one = FakeNodes(), replace(STRICT, workers=1)
    with RolloutPool(config(tmp_path, one), None, nodes) as pool:
        pool.run([spec(100)])
        before = pool.process_ids()

        def notice(done: Callable[[], int]) -> None:
            wait_until(lambda: done() >= 2)
            nodes.notice_s = time.monotonic() + 1000
            (pid,) = before.values()
            wait_until(lambda: not runs(pid))
            nodes.notice_s = None

        result = played(pool, 12, notice, delay_s=0.2)
        assert set(pool.process_ids()) != set(before)
    assert result.counts["completed"] == 12
    assert (result.attempts, result.incidents, result.worker_losses) == (12, {}, 0)


def test_what_a_leaving_worker_cannot_finish_is_handed_back(cluster: None, tmp_path: Path) -> None:
    nodes, one = FakeNodes(), replace(STRICT, workers=1)
    with RolloutPool(config(tmp_path, one), None, nodes) as pool:
        pool.run([spec(100)])
        (pid,) = pool.process_ids().values()

        def notice(done: Callable[[], int]) -> None:
            wait_until(lambda: len(list((tmp_path / "scratch").glob("attempts-e[0-9]"))) >= 2)
            nodes.notice_s = time.monotonic()
            wait_until(lambda: not runs(pid))
            nodes.notice_s = None

        result = played(pool, 3, notice, delay_s=3.0)
    assert result.counts["completed"] == 3
    assert result.attempts > 3
    assert result.incidents == {}


@pytest.mark.parametrize("gone", [True, False], ids=["its node is gone", "its node stays"])
def test_a_lost_worker_counts_by_what_became_of_its_node(cluster: None, tmp_path: Path, gone: bool) -> None:
    nodes, one = FakeNodes(), replace(STRICT, workers=1, failure_floor=5)
    nodes.is_gone = None  # Ray tells of the worker first
    with RolloutPool(config(tmp_path, one), None, nodes) as pool:
        pool.run([spec(100)])
        (pid,) = pool.process_ids().values()

        def lose(done: Callable[[], int]) -> None:
            wait_until(lambda: done() >= 1)
            os.kill(pid, signal.SIGKILL)
            nodes.is_gone = gone or None

        result = played(pool, 8, lose, delay_s=0.5)
    assert result.worker_losses == 1
    if gone:
        assert (result.counts["completed"], result.incidents) == (8, {})
    else:
        assert result.counts["failed"] >= 1
        assert result.incidents == {"infra/worker_died": 1}


@pytest.mark.parametrize("told", [True, False], ids=["SIGTERM", "SIGKILL"])
def test_a_worker_that_is_told_to_end_hands_back_what_it_plays(cluster: None, tmp_path: Path, told: bool) -> None:
    """On a node that stays; whoever is killed without a word is the control."""
    one = replace(STRICT, workers=1, failure_floor=5)
    demands = dict.fromkeys(ROLES, Demand(0, 0, 0))
    with NodeWatch(demands, 60.0, lambda said: None) as nodes, RolloutPool(config(tmp_path, one), None, nodes) as pool:
        pool.run([spec(100)])
        (pid,) = pool.process_ids().values()

        def end(done: Callable[[], int]) -> None:
            wait_until(lambda: done() >= 1)
            os.kill(pid, signal.SIGTERM if told else signal.SIGKILL)

        result = played(pool, 8, end, delay_s=0.5)
    assert result.worker_losses == 1
    if told:
        assert (result.counts["completed"], result.incidents) == (8, {})
    else:
        assert result.incidents == {"infra/worker_died": 1}


def test_nothing_is_sent_while_every_policy_server_waits_for_a_node(cluster: None, tmp_path: Path) -> None:
    nodes, one = FakeNodes(), replace(STRICT, workers=1, stall_timeout_s=2.0)
    nodes.no_policy = "1 x policy server"
    with RolloutPool(config(tmp_path, one), None, nodes) as pool:

        def come(done: Callable[[], int]) -> None:
            wait_until(lambda: bool(pool.process_ids()))
            time.sleep(4.0)  # longer than a run may stand still
            assert done() == 0
            nodes.no_policy = ""

        result = played(pool, 4, come, delay_s=0.0)
    assert (result.counts["completed"], result.attempts) == (4, 4)


def test_the_fleet_shrinks_to_its_minimum_and_grows_for_the_next_run(cluster: None, tmp_path: Path) -> None:
    with RolloutPool(config(tmp_path, replace(STRICT, workers_min=1))) as pool:
        assert pool.run([spec(i, "together") for i in range(6)]).counts["completed"] == 6
        before = pool.process_ids()
        pool.rest()
        kept = pool.process_ids()
        assert len(kept) == 1
        assert set(kept) < set(before)
        wait_until(lambda: not any(runs(pid) for worker, pid in before.items() if worker not in kept))
        assert pool.run([spec(i) for i in range(10, 14)]).counts["completed"] == 4
        wait_until(lambda: pool.run([spec(99)]).counts["completed"] == 1 and len(pool.process_ids()) == 2)


def test_a_fleet_without_a_minimum_stays(cluster: None, tmp_path: Path) -> None:
    with RolloutPool(config(tmp_path, STRICT)) as pool:
        pool.run([spec(i, "together") for i in range(4)])
        before = pool.process_ids()
        pool.rest()
        assert pool.process_ids() == before
        assert FailureKind.INFRA not in {failure.kind for failure in pool.run([spec(50)]).failures.values()}
