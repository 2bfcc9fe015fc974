"""A pool over several nodes: led to its own node's service, seen off by drains, unharmed by lost nodes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import ray
from ray._private.state import state
from ray._raylet import GcsClient  # type: ignore[attr-defined]

from cluster.node_watch import NodeWatch
from cluster.placement import LEARNER, SERVER, WORKER, Demand
from rollout_workers.pool import RolloutPool
from rollout_workers.results import RolloutResult
from rollout_workers.settings import RolloutSettings
from rollout_workers.spec import EpisodeSpec
from tests.nodes.machines import ROOT, Machines, Node, machines, wait_until
from tests.rollout_workers.fake_world import HERE, config, spec

pytestmark = [pytest.mark.faults, pytest.mark.lengthy]

NODE = Demand(0.5, 0.0, 0, "browser")
ROLES = {LEARNER: Demand(0, 0, 0), SERVER: Demand(0, 0, 0), WORKER: NODE}
SETTINGS = RolloutSettings(
    workers=2, contexts_per_worker=2, prefetch_per_worker=0, worker_cpus=NODE.cpus, shard_linger_s=0.05,
    retry_delay_s=0.05, start_timeout_s=200.0, stall_timeout_s=200.0, attempts=1, failure_floor=0,
    infra_failure_share=0.0, hang_timeout_s=60.0,
)  # fmt: skip
"""One attempt and no budget: what counts as an attempt, or as a failure, fails the test."""
LIMIT_S = 150.0
PREEMPTION = 2


@pytest.fixture
def cluster() -> Iterator[Machines]:
    with machines(cpus=1) as running:
        yield running


@contextmanager
def pool(folder: Path, settings: RolloutSettings = SETTINGS) -> Iterator[tuple[RolloutPool, NodeWatch, list[str]]]:
    told: list[str] = []
    given = replace(config(folder, settings, f"{HERE}:ON_EACH_NODE"), resources=NODE.resources)
    with NodeWatch(ROLES, 300.0, told.append) as nodes, RolloutPool(given, None, nodes) as made:
        yield made, nodes, told


class Playing:
    """A run of a pool in a thread of its own."""

    def __init__(self, pool: RolloutPool, specs: list[EpisodeSpec]) -> None:
        self.result: RolloutResult | None = None
        self.completed = 0
        self._thread = threading.Thread(target=self._run, args=(pool, specs))
        self._thread.start()

    def _run(self, pool: RolloutPool, specs: list[EpisodeSpec]) -> None:
        self.result = pool.run(specs, lambda counts: setattr(self, "completed", counts.completed))

    def ended(self) -> RolloutResult:
        self._thread.join(LIMIT_S)
        assert self.result is not None, "the run did not end, or by an error"
        return self.result


def workers_on(node: str) -> list[int]:
    return [a["Pid"] for a in actors() if a["Address"]["NodeID"] == node and "-worker-" in a["Name"]]


def actors() -> list[dict]:  # type: ignore[type-arg]
    return [a for a in state.actor_table(None).values() if a["State"] == "ALIVE" and a["Name"].startswith("waymark-")]


def drain(node: str, seconds: float) -> None:
    gcs = GcsClient(address=ray.get_runtime_context().gcs_address)
    deadline_ms = int((time.time() + seconds) * 1000)
    accepted, why = gcs.drain_node(node, PREEMPTION, "spot", deadline_ms, timeout=30)
    assert accepted, why


def with_two_nodes(cluster: Machines) -> tuple[Node, Node]:
    one, other = (cluster.add(cpus=1, resources={"browser": 1}) for _ in range(2))
    return one, other


def test_each_node_has_a_service_of_its_own_for_as_long_as_workers_are_there(cluster: Machines, tmp_path: Path) -> None:
    one, other = with_two_nodes(cluster)
    four = replace(SETTINGS, workers=4, workers_min=0)
    with pool(tmp_path, four) as (made, _, _):
        wait_until(lambda: len(workers_on(one.id)) == len(workers_on(other.id)) == 2)
        assert made.run([spec(i, delay_s=0.3) for i in range(24)]).counts["completed"] == 24
        services = {a["Address"]["NodeID"]: a["Pid"] for a in actors() if "-service-" in a["Name"]}
        assert set(services) == {one.id, other.id}
        told = (tmp_path / "scratch" / "connections").read_text().split()
        assert sorted(told) == sorted(str(pid) for pid in services.values() for _ in range(2)), "two workers on each"
        made.rest()
        wait_until(lambda: not actors())
        assert made.run([spec(i) for i in range(30, 40)]).counts["completed"] == 10, "and it grows again"
        assert len(actors()) > 0


def test_a_node_that_has_notice_is_left_without_an_attempt(cluster: Machines, tmp_path: Path) -> None:
    one, other = with_two_nodes(cluster)
    with pool(tmp_path) as (made, _, _):
        run = Playing(made, [spec(i, delay_s=0.5) for i in range(40)])
        wait_until(lambda: run.completed >= 4)
        leaving = one.id
        drain(leaving, 60.0)
        wait_until(lambda: not workers_on(leaving))
        one.kill()
        result = run.ended()
    assert result.counts["completed"] == 40
    assert (result.attempts, result.incidents, result.worker_losses) == (40, {}, 0), "all were finished where they were"


def test_a_pods_hook_ends_ray_when_its_workers_have_finished(cluster: Machines, tmp_path: Path) -> None:
    """The program of the images, with Ray's own notice; what would end every Ray of this machine is noted only."""
    one, _ = with_two_nodes(cluster)
    with pool(tmp_path / "pool") as (made, _, _):
        run = Playing(made, [spec(i, delay_s=0.5) for i in range(60)])
        wait_until(lambda: run.completed >= 4)
        hook = hook_of(one, cluster, tmp_path / "pod", seconds=115)
        assert hook.wait(LIMIT_S) == 0
        assert not one.runs("RolloutWorker"), "Ray ends after the workers"
        one.kill()
        result = run.ended()
    assert (tmp_path / "pod" / "stopped").read_text() == "stop --grace-period 15\n"
    assert result.counts["completed"] == 60
    assert (result.attempts, result.incidents, result.worker_losses) == (60, {}, 0)


def hook_of(node: Node, cluster: Machines, pod: Path, seconds: int) -> subprocess.Popen[bytes]:
    """Start what a pod does when it must go, as if the node was a pod."""
    processes = pod / "proc"
    processes.mkdir(parents=True)
    for process in psutil.Process(node.process.pid).children(recursive=True):
        (processes / str(process.pid)).symlink_to(f"/proc/{process.pid}")
    ray_here = pod / "ray"
    ray_here.write_text(
        f'#!/bin/sh\n[ "$1" != stop ] || {{ echo "$@" > {pod}/stopped; exit 0; }}\n'
        f'exec {sys.executable} -m ray.scripts.scripts "$@" --address {cluster.gcs} --node-id {node.id}\n'
    )
    ray_here.chmod(0o755)
    environment = {**cluster.environment, "PATH": f"{pod}:{os.environ['PATH']}", "PROC": str(processes)}
    return subprocess.Popen([str(ROOT / "deploy" / "images" / "drain.sh"), str(seconds)], env=environment)


def test_what_is_not_finished_when_a_node_goes_is_handed_back(cluster: Machines, tmp_path: Path) -> None:
    one, _ = with_two_nodes(cluster)
    with pool(tmp_path) as (made, _, _):
        run = Playing(made, [spec(i, delay_s=6.0) for i in range(8)])
        leaving = one.id
        wait_until(lambda: len(workers_on(leaving)) == 1 and len(attempts(tmp_path)) >= 4)
        drain(leaving, 8.0)
        result = run.ended()
    assert result.counts["completed"] == 8
    assert result.attempts > 8, "some were handed back"
    assert result.incidents == {}


def test_a_lost_node_takes_no_attempt_and_nothing_of_the_budget(cluster: Machines, tmp_path: Path) -> None:
    one, _ = with_two_nodes(cluster)
    with pool(tmp_path) as (made, _, _):
        run = Playing(made, [spec(i, delay_s=0.5) for i in range(60)])
        wait_until(lambda: run.completed >= 4)
        one.kill()
        result = run.ended()
    assert result.counts["completed"] == 60
    assert (result.incidents, result.worker_losses) == ({}, 1)


def test_a_node_that_ends_in_an_orderly_way_takes_no_attempt(cluster: Machines, tmp_path: Path) -> None:
    one, _ = with_two_nodes(cluster)
    with pool(tmp_path) as (made, _, _):
        run = Playing(made, [spec(i, delay_s=0.5) for i in range(60)])
        wait_until(lambda: run.completed >= 4)
        one.process.send_signal(signal.SIGTERM)  # it drains itself for half a minute
        result = run.ended()
    assert result.counts["completed"] == 60
    assert (result.attempts, result.incidents, result.worker_losses) == (60, {}, 0)


def test_a_worker_that_dies_on_a_node_that_stays_has_used_its_attempt(cluster: Machines, tmp_path: Path) -> None:
    """The control: without a node that went away, the same loss is a failure."""
    one, _ = with_two_nodes(cluster)
    lenient = replace(SETTINGS, failure_floor=10)
    with pool(tmp_path, lenient) as (made, _, _):
        run = Playing(made, [spec(i, delay_s=0.5) for i in range(20)])
        wait_until(lambda: run.completed >= 4)
        os.kill(workers_on(one.id)[0], signal.SIGKILL)
        result = run.ended()
    assert result.counts["failed"] >= 1
    assert result.incidents == {"infra/worker_died": 1}


def test_a_run_waits_for_a_node_longer_than_a_worker_may_take_to_start(cluster: Machines, tmp_path: Path) -> None:
    hasty = replace(SETTINGS, start_timeout_s=12.0)
    with pool(tmp_path, hasty) as (made, nodes, told):
        run = Playing(made, [spec(i) for i in range(6)])
        wait_until(lambda: nodes.waiting(WORKER) == 2)
        assert not held_for(15.0, lambda: run.result is not None)
        assert "resource 'browser'" in told[-1]
        cluster.add(cpus=1, resources={"browser": 1})
        assert run.ended().counts["completed"] == 6
        wait_until(lambda: told[-1] == "")


def attempts(folder: Path) -> list[Path]:
    return list((folder / "scratch").glob("attempts-*"))


def held_for(seconds: float, happened: Callable[[], bool]) -> bool:
    """Whether something happened within so many seconds."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if happened():
            return True
        time.sleep(0.2)
    return False
