"""Ray's autoscaler (v2) brings nodes for browsers, takes them while nothing plays, and brings them again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import ray

from cluster.errors import RunStopped
from cluster.placement import WORKER, Demand
from tests.e2e.test_submit import free_port
from tests.nodes.machines import HEAD, ROOT, Machines, machines, wait_until
from tests.nodes.test_pools import NODE, ROLES, SETTINGS, NodeWatch, Playing, pool
from tests.rollout_workers.fake_world import spec

pytestmark = [pytest.mark.faults, pytest.mark.lengthy]

HEAD_ID = "fffffffffffffffffffffffffffffffffffffffffffffffffff00000"
HEAD_KIND = "ray.head.default"
"""What the fake provider calls the head, and its kind."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Machines]:
    port = free_port()
    kinds = {
        HEAD_KIND: {"resources": {"CPU": 1}, "max_workers": 0, "node_config": {}},
        "browser": {"resources": {"CPU": 1, "browser": 1}, "min_workers": 0, "max_workers": 2, "node_config": {}},
    }
    provider = {
        "type": "external", "module": "tests.nodes.loopback_provider.LoopbackProvider",
        "gcs_address": f"{HEAD}:{port}", "launch_multiple": True, "head_node_id": HEAD_ID,
    }  # fmt: skip
    scaling = {
        "cluster_name": "fake", "max_workers": 2, "idle_timeout_minutes": 0.1, "provider": provider,
        "available_node_types": kinds, "head_node_type": HEAD_KIND, "auth": {}, "docker": {}, "file_mounts": {},
        "initialization_commands": [], "setup_commands": [], "head_setup_commands": [], "worker_setup_commands": [],
        "head_start_ray_commands": [], "worker_start_ray_commands": [], "cluster_synced_files": [],
        "file_mounts_sync_continuously": False, "rsync_exclude": [], "rsync_filter": [], "upscaling_speed": 1.0,
    }  # fmt: skip
    file = tmp_path / "scaling.yaml"
    file.write_text(json.dumps(scaling))
    extra = {
        "RAY_enable_autoscaler_v2": "1", "RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
    }  # fmt: skip
    of_head = {"RAY_CLOUD_INSTANCE_ID": HEAD_ID, "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD_ID}
    with machines(1, extra, port, [f"--autoscaling-config={file}"], of_head=of_head) as running:
        yield running


def browser_nodes() -> int:
    return sum(node["Alive"] and "browser" in node["Resources"] for node in ray.nodes())


def test_from_nothing_to_two_nodes_back_while_nothing_plays_and_up_again(cluster: Machines, tmp_path: Path) -> None:
    assert browser_nodes() == 0
    four = replace(SETTINGS, workers=4, workers_min=0, start_timeout_s=30.0)
    with pool(tmp_path, four) as (made, nodes, told):
        run = Playing(made, [spec(i, delay_s=0.3) for i in range(40)])
        wait_until(lambda: nodes.waiting(WORKER) > 0)
        assert run.ended().counts["completed"] == 40
        wait_until(lambda: browser_nodes() == 2)
        made.rest()
        wait_until(lambda: browser_nodes() == 0)
        again = Playing(made, [spec(i) for i in range(50, 60)])
        result = again.ended()
    assert (result.counts["completed"], result.incidents) == (10, {})
    assert any("resource 'browser'" in said for said in told)


def test_what_no_node_of_the_autoscaler_can_hold_is_a_sentence(cluster: Machines, tmp_path: Path) -> None:
    too_large = Demand(64.0, 0.0, 0, NODE.node)
    with NodeWatch({**ROLES, WORKER: too_large}, 300.0, lambda said: None) as nodes:
        process = ray.remote(Stand).options(name="waymark-run-1-worker-0", **too_large.options).remote()
        wait_until(lambda: nodes.waiting(WORKER) == 1)

        said: list[str] = []

        def refused() -> bool:
            try:
                nodes.check(WORKER)
            except RunStopped as error:
                said.append(str(error))
            return bool(said)

        wait_until(refused)
        assert "no kind of node for a rollout worker (64 CPUs" in said[0]
        ray.kill(process)


class Stand:
    """Stands for a worker."""
