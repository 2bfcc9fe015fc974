"""Rows of the recovery matrix: a policy server killed, frozen, slow, and answering with the wrong weights.

The server knows the right answers, so whatever is not 1.0 at the end was an accident that was scored.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import ray

from policy.client import PolicySource
from policy.server_watch import ServerWatch
from policy.settings import PolicySettings
from rollout_workers.pool import RolloutPool, RolloutStopped
from rollout_workers.results import RolloutResult
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import WorkerConfig
from tests.faults import scripted_server
from tests.faults.books import Books, judged
from tests.rollout_workers.fake_world import config, spec

pytestmark = [pytest.mark.faults, pytest.mark.usefixtures("cluster")]

EPISODES = 12
VERSION = 3
SPECS = [replace(spec(i, delay_s=1.0), version=VERSION) for i in range(EPISODES)]
SETTINGS = RolloutSettings(
    workers=1,
    contexts_per_worker=3,
    prefetch_per_worker=1,
    worker_cpus=0.1,
    attempts=10,
    shard_linger_s=0.05,
    retry_delay_s=0.2,
    hang_timeout_s=60.0,
    start_timeout_s=600.0,
    stall_timeout_s=600.0,
    failure_floor=100,
)
SLOW_S = 60.0
LIMIT_S = 80.0
"""How long an accident lasts that nobody notices."""
PATIENCE = PolicySettings(attempt_timeout_s=5.0, deadline_s=90.0, hang_timeout_s=6.0)


@dataclass
class World:
    """A pool's configuration, the one policy server behind it, and the folder that rules it."""

    config: WorkerConfig
    server: Any
    folder: Path

    @property
    def pid(self) -> int:
        return int(ray.get(self.server.pid.remote(), timeout=120))

    def noted(self, what: str) -> int:
        """Return how often the server noted this."""
        path = self.folder / what
        return path.stat().st_size if path.exists() else 0

    def put_until(self, rule: str, text: str, then: str, what: str) -> None:
        """Have the file ``rule`` say ``text``, and ``then`` something else once the server has noted ``what``."""

        def wait() -> None:
            ends = time.monotonic() + LIMIT_S
            while not self.noted(what) and time.monotonic() < ends:
                time.sleep(0.05)
            (self.folder / rule).write_text(then)

        (self.folder / rule).write_text(text)
        threading.Thread(target=wait, daemon=True).start()

    def play(self, row: str, accident: Callable[[], None]) -> RolloutResult:
        """Play all episodes with an accident on the way; each must be judged, and rightly, by the right weights."""
        with RolloutPool(self.config) as pool:
            books = Books(pool, accident)
            result = books.play(SPECS)
        books.say(row)
        assert books.left_behind() == []
        assert result.counts["completed"] == EPISODES
        assert {(t.outcome, t.policy_version) for t in judged(self.config.shard_dir, result)} == {(1.0, VERSION)}
        assert all(step.policy_version == VERSION for t in judged(self.config.shard_dir, result) for step in t.steps)
        return result


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = config(tmp_path, SETTINGS)
    name = f"expert-{uuid.uuid4().hex}"
    server = scripted_server.start(name, made.tokenizer, tmp_path)
    policy = PolicySource("policy.ray_client:named_client", {"servers": {"expert": name}, "settings": PATIENCE})
    yield World(replace(made, policy=policy), server, tmp_path)
    ray.kill(server)


def test_policy_server_dead_is_waited_for(world: World) -> None:
    before = world.pid
    result = world.play("policy server SIGKILL", lambda: os.kill(before, signal.SIGKILL))
    assert world.pid != before
    assert all(code.startswith("policy/") for code in result.incidents)


def test_policy_server_frozen_is_killed_and_waited_for(world: World) -> None:
    before = world.pid
    with ServerWatch({"expert": world.server}, PATIENCE) as watch:
        result = world.play("policy server frozen (SIGSTOP), limit 6 s", lambda: os.kill(before, signal.SIGSTOP))
        assert watch.kills >= 1
    assert world.pid != before
    assert all(code.startswith("policy/") for code in result.incidents)


def test_policy_server_dead_whose_next_starts_fail_is_started_until_it_is_up(world: World) -> None:
    """The failed starts are the server's own business: Ray, which gives up an actor that could not start, sees none."""
    before = world.pid

    def end_and_fail() -> None:
        (world.folder / "FAILING").write_text("2")
        os.kill(before, signal.SIGKILL)

    with ServerWatch({"expert": world.server}, PATIENCE):
        result = world.play("policy server SIGKILL, its next two starts fail", end_and_fail)
    assert world.pid != before
    assert (world.folder / "STARTS").read_text().count("start") == 4
    assert all(code.startswith("policy/") for code in result.incidents)


def test_policy_server_slow_costs_time_only(world: World) -> None:
    """A request that would take a minute is given up after the limit of a try, and nobody waits for its answer."""
    result = world.play(
        "policy server slow until it is asked no longer, limit 5 s a try",
        lambda: world.put_until("SLOW", f"{SLOW_S}", "0", what=scripted_server.CUT),
    )
    assert world.noted(scripted_server.CUT) > 0
    assert all(code.startswith("policy/") for code in result.incidents)
    assert max(step.policy_s for t in judged(world.config.shard_dir, result) for step in t.steps) < SLOW_S


def test_policy_server_with_the_wrong_version_is_refused_until_it_has_the_right_one(world: World) -> None:
    result = world.play(
        "policy server with the wrong version until it was asked",
        lambda: world.put_until("VERSION", "2", str(VERSION), what="answered-2"),
    )
    assert set(result.incidents) == {"policy/wrong_version"}


def test_policy_server_that_stays_wrong_stops_the_run_and_nothing_is_scored(world: World) -> None:
    """Past the budget the run ends by itself, names cause and remedy, and what was finished is on disk."""
    few = replace(world.config, settings=replace(SETTINGS, failure_floor=4, policy_failure_share=0.0))
    said = r"[5-9] policy failures; at most 4 .*wrong_version x.*of version 3, found one of version 2.*same command"
    with RolloutPool(few) as pool:
        books = Books(pool, lambda: _write(world.folder / "VERSION", "2"))
        with pytest.raises(RolloutStopped, match=said) as stopped:
            books.play(SPECS)
        result = stopped.value.result
        books.require_balance(result, EPISODES)
        kept = judged(few.shard_dir, result)
        assert {(t.outcome, t.policy_version) for t in kept} == {(1.0, VERSION)}
        assert len(kept) >= 3
        assert set(result.incidents) == {"policy/wrong_version"}

        (world.folder / "VERSION").write_text(str(VERSION))
        done = {t.episode_id for t in kept}
        rest = pool.run([s for s in SPECS if s.episode_id not in done])
    assert rest.counts["completed"] == EPISODES - len(done)


def _write(path: Path, text: str) -> None:
    path.write_text(text)
