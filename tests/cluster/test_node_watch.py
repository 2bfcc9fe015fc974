"""Waiting for a node is seen, said, measured and bounded; what has a node waits for none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray._private.state import state

from cluster.errors import ProcessLost, RunStopped
from cluster.node_watch import NodeWatch
from cluster.placement import LEARNER, SERVER, WORKER, Demand, demands, own_resources
from cluster.preflight.machine import Machine
from cluster.preflight.plan import make_plan
from cluster.recipe.recipe import build_recipe
from telemetry import meter
from telemetry.prometheus_sink import PrometheusSink
from tests.rollout_workers.ray_cluster import small_ray

LIMIT_S = 120.0
HERE, NOWHERE = Demand(0.1, 0.0, 64), Demand(0.1, 0.0, 64, "browser")
ROLES = {LEARNER: HERE, SERVER: HERE, WORKER: NOWHERE}


@ray.remote
class Process:
    """Stands for one of the run's."""


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with small_ray():
        yield


def start(role: str, number: int = 0) -> object:
    return Process.options(name=f"waymark-run-1-{role}-{number}", **ROLES[role].options).remote()  # type: ignore[attr-defined]


def end(*processes: object) -> None:
    """Kill them, and wait until Ray lists them as dead: a later test would take one that it still lists for its own."""
    for process in processes:
        ray.kill(process)
    wait_until(lambda: all(state.actor_table(one._actor_id.hex())["State"] == "DEAD" for one in processes))  # type: ignore[attr-defined]


def wait_until(done: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_who_has_no_node_is_named_with_what_it_declares_and_ends_nothing_before_its_limit() -> None:
    told: list[str] = []
    sink = PrometheusSink()
    meter.install(sink, "run")
    try:
        with NodeWatch(ROLES, LIMIT_S, told.append) as nodes:
            placed, *unplaced = start(LEARNER), start(WORKER, 0), start(WORKER, 1)
            nodes.settled(LEARNER)
            wait_until(lambda: nodes.waiting(WORKER) == 2)
            nodes.check(WORKER)
            nodes.check(LEARNER)
            wait_until(lambda: bool(told))
            assert told[-1] == "2 x rollout worker (0.1 CPUs, 64 MiB, on a node with the resource 'browser')"
            wait_until(lambda: nodes.starting(["worker-1", "learner-0"]) == {"worker-1"})
            assert 'waymark_processes_without_node{role="worker",run="run"} 2.0' in sink.text()
            end(*unplaced)
            wait_until(lambda: told[-1] == "")
            assert nodes.waiting(WORKER) == 0
        with NodeWatch(ROLES, 0.0, told.append) as impatient:
            late = start(WORKER)
            wait_until(lambda: impatient.waiting(WORKER) == 1)
            with pytest.raises(RunStopped, match=r"no node came within run.node_timeout_s .*resource 'browser'"):
                impatient.check(WORKER)
            with pytest.raises(RunStopped, match="no node came"):
                impatient.settled(WORKER)
            end(late)
        end(placed)
    finally:
        meter.install(None)


def test_servers_of_which_none_has_a_node_hold_up_the_episodes() -> None:
    elsewhere = {**ROLES, SERVER: NOWHERE}
    with NodeWatch(elsewhere, LIMIT_S, lambda said: None) as nodes:
        server = Process.options(name="waymark-run-1-server-0", **NOWHERE.options).remote()  # type: ignore[attr-defined]
        wait_until(lambda: bool(nodes.held_up()))
        assert "policy server" in nodes.held_up()
        second = start(SERVER, 1)
        wait_until(lambda: not nodes.held_up())
        assert nodes.waiting(SERVER) == 1, "the first one waits on, while the second one answers"
        end(server, second)


def test_a_recipe_names_the_nodes_of_each_role_and_declares_what_the_plan_counts() -> None:
    plain = demands(build_recipe({}))
    assert [demand.resources for demand in plain.values()] == [{}, {}, {}]
    assert own_resources(build_recipe({})) == {}
    recipe = build_recipe({}, ["run.resources.rollout_nodes=browser", "run.resources.learner_nodes=learner"])
    found = demands(recipe)
    assert {role: list(demand.resources) for role, demand in found.items()} == {
        LEARNER: ["learner"], SERVER: [], WORKER: ["browser"],
    }  # fmt: skip
    assert set(own_resources(recipe)) == {"browser", "learner"}
    counted = {p.name: (p.cpus, p.gpus, p.memory_mb) for p in make_plan(recipe, Machine.here()).processes}
    for role, name in ((LEARNER, "learner"), (SERVER, "policy server"), (WORKER, "rollout worker")):
        assert counted[name] == (found[role].cpus, found[role].gpus, found[role].memory_mb)
    assert found[WORKER].memory_mb > 0
    with pytest.raises(Exception, match="custom resource of Ray"):
        build_recipe({}, ["run.resources.rollout_nodes=CPU"])


@ray.remote
class Faulty:
    """A process that cannot be built."""

    def __init__(self) -> None:
        raise RuntimeError("the model\ndoes not fit")


@ray.remote
class Slow:
    """A process whose start takes until the file is there."""

    def __init__(self, go_on: str) -> None:
        ends = time.monotonic() + LIMIT_S
        while not Path(go_on).exists() and time.monotonic() < ends:
            time.sleep(0.05)


def test_who_died_for_good_is_not_waited_for_and_said_to_be_dead() -> None:
    with NodeWatch(ROLES, LIMIT_S, lambda said: None) as nodes:
        dead = Faulty.options(name="waymark-run-2-server-0", **HERE.options).remote()  # type: ignore[attr-defined]
        with pytest.raises(
            ProcessLost, match=r"no policy server is left, .* RuntimeError: the model does not fit; see its log"
        ):
            nodes.require_one(SERVER, LIMIT_S)
        nodes.settled(SERVER)
        rank = start(LEARNER, 0)
        lost = Faulty.options(name="waymark-run-2-learner-1", **HERE.options).remote()  # type: ignore[attr-defined]
        nodes.settled(LEARNER, 2)
        other = start(SERVER, 1)
        nodes.require_one(SERVER, LIMIT_S)
        end(dead, rank, lost, other)


def test_who_is_listed_as_alive_for_a_moment_before_it_is_dead_was_never_up(monkeypatch: pytest.MonkeyPatch) -> None:
    name, listed, died_at = "waymark-run-4-server-0", state.actor_table, list[float]()

    def late(*asked: Any, **more: Any) -> dict[str, Any]:
        table: dict[str, Any] = listed(*asked, **more)
        for one in table.values():
            if isinstance(one, dict) and (one.get("Name"), one.get("State")) == (name, "DEAD"):
                died_at.append(time.monotonic())
                if died_at[-1] - died_at[0] < 0.5:
                    one["State"] = "ALIVE"
        return table

    monkeypatch.setattr(state, "actor_table", late)
    with NodeWatch(ROLES, LIMIT_S, lambda said: None) as nodes:
        dead = Faulty.options(name=name, **HERE.options).remote()  # type: ignore[attr-defined]
        with pytest.raises(ProcessLost, match="no policy server is left"):
            nodes.require_one(SERVER, LIMIT_S)
        end(dead)


def test_a_start_is_waited_for_as_long_as_it_may_take(tmp_path: Path) -> None:
    with NodeWatch(ROLES, LIMIT_S, lambda said: None) as nodes:
        go_on = tmp_path / "go on"
        slow = Slow.options(name="waymark-run-3-server-0", **HERE.options).remote(str(go_on))  # type: ignore[attr-defined]
        nodes.settled(SERVER)
        assert nodes.starting(["server-0", "server-1"]) == {"server-0"}
        with pytest.raises(ProcessLost, match=r"no policy server came up within 0.5 s of having a node"):
            nodes.require_one(SERVER, 0.5)
        go_on.touch()
        nodes.require_one(SERVER, LIMIT_S)
        assert nodes.starting(["server-0"]) == set()
        end(slow)
