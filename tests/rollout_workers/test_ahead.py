"""Rollouts beside other work, over real Ray actors: closed, they finish what is played; left, they end at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest

from records.failures import Failure
from replay.buffer import ReplayBuffer
from rollout_workers.ahead import RolloutsAhead
from rollout_workers.leases import Event, Lease
from rollout_workers.pool import RolloutPool, RolloutStopped
from tests.e2e.processes import runs
from tests.rollout_workers.fake_world import config, spec
from tests.rollout_workers.ray_cluster import small_ray
from tests.rollout_workers.test_preemption import STRICT, wait_until

ONE = replace(STRICT, workers=1)
"""Two episodes at a time."""


class Journal:
    """What was written down of each episode."""

    def __init__(self) -> None:
        self.events: list[tuple[Event, str]] = []

    def __call__(self, event: Event, lease: Lease, failure: Failure | None) -> None:
        self.events.append((event, lease.episode_id))

    def force(self) -> None:
        """Nothing outlives a test."""

    def count(self) -> Counter[Event]:
        return Counter(event for event, _ in self.events)


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with small_ray():
        yield


def test_closed_it_finishes_what_is_played_begins_nothing_and_the_next_run_plays_the_rest(tmp_path: Path) -> None:
    journal, specs = Journal(), [spec(i, delay_s=0.3) for i in range(40)]
    with RolloutPool(config(tmp_path, ONE)) as pool:
        with RolloutsAhead(pool, specs, lambda counts: None, journal) as begun:
            wait_until(lambda: journal.count()[Event.COMPLETE] >= 3)
        done = set(begun.result.located)
        counted = journal.count()
        assert 3 <= len(done) < 40
        assert counted[Event.LEASE] == counted[Event.COMPLETE] == len(done), "each attempt has its end"
        assert set(ReplayBuffer(tmp_path / "shards").ids()) == done
        assert begun.result.counts["not_dispatched"] == 40 - len(done)
        left = [one for one in specs if one.episode_id not in done]
        both = begun.result.then(pool.run([replace(one, task=spec(0).task) for one in left], None, journal))
    assert both.counts == {"total": 40, "dispatched": 40, "completed": 40, "failed": 0, "not_dispatched": 0}
    assert set(both.located) == {one.episode_id for one in specs}
    assert set(journal.count().values()) == {40}


def test_a_run_that_may_be_closed_hands_its_workers_nothing_beyond_their_slots(tmp_path: Path) -> None:
    """What lies ready at a worker would have to be played before the run ends."""
    journal = Journal()
    with (
        RolloutPool(config(tmp_path, replace(ONE, prefetch_per_worker=8))) as pool,
        RolloutsAhead(pool, [spec(i, delay_s=0.1) for i in range(20)], lambda counts: None, journal),
    ):
        wait_until(lambda: journal.count()[Event.COMPLETE] >= 4)
        events = [event for event, _ in journal.events]
    held = list(accumulate(1 if event is Event.LEASE else -1 for event in events))
    assert max(held) == 2


def test_played_to_its_end_it_lets_the_spare_workers_go(tmp_path: Path) -> None:
    with RolloutPool(config(tmp_path, replace(ONE, workers_min=0))) as pool:
        with RolloutsAhead(pool, [spec(i) for i in range(3)], lambda counts: None, Journal()) as begun:
            wait_until(lambda: bool(pool.process_ids()))
            (pid,) = pool.process_ids().values()
            wait_until(lambda: not runs(pid))
        assert begun.result.counts["completed"] == 3


def test_left_by_an_error_it_waits_for_no_episode_and_what_was_played_has_no_end(tmp_path: Path) -> None:
    journal = Journal()

    def fail_while_two_are_played(pool: RolloutPool) -> None:
        with RolloutsAhead(pool, [spec(i, delay_s=60.0) for i in range(4)], lambda counts: None, journal):
            wait_until(lambda: journal.count()[Event.LEASE] == 2)
            raise ZeroDivisionError

    with RolloutPool(config(tmp_path, ONE)) as pool, pytest.raises(ZeroDivisionError):
        fail_while_two_are_played(pool)
    assert journal.count() == {Event.LEASE: 2}


def test_a_pool_that_stops_says_so_at_the_end_of_the_block(tmp_path: Path) -> None:
    worked, journal = [], Journal()

    def work(pool: RolloutPool) -> None:
        with RolloutsAhead(pool, [spec(i, "infra", times=9) for i in range(4)], lambda counts: None, journal):
            wait_until(lambda: journal.count()[Event.FAIL] >= 2)
            worked.append("to the end")

    with RolloutPool(config(tmp_path, ONE)) as pool, pytest.raises(RolloutStopped, match="infra"):
        work(pool)
    assert worked == ["to the end"]
