"""A head that keeps what it knows in Redis finds its cluster again when it was killed; without Redis it does not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

from judges.llm.preflight import answers
from judges.llm.settings import LlmSettings
from records.checks import Status
from tests.e2e.test_submit import free_port
from tests.nodes.machines import HEAD, Machines, join, machines, start_node, wait_until
from tests.redis_server import redis_server

pytestmark = [pytest.mark.faults, pytest.mark.lengthy]

PATIENT = {"RAY_gcs_rpc_server_reconnect_timeout_s": "240"}
"""Nodes wait that long for a head that is gone; a busy machine takes a while to start one."""


@ray.remote(num_cpus=0, resources={"browser": 0.1})
class Keeper:
    """Counts how often it was asked, and says by which process."""

    def __init__(self) -> None:
        self._asked = 0

    def ask(self) -> tuple[int, int]:
        self._asked += 1
        return os.getpid(), self._asked


@pytest.fixture
def redis_port(tmp_path: Path) -> Iterator[int]:
    with redis_server(tmp_path) as port:
        yield port


def restarted(cluster: Machines, port: int, of_head: dict[str, str]) -> None:
    """Kill the head with all its processes, start one at the same address, and join it from here."""
    ray.shutdown()
    cluster.head.kill()
    cluster.head = start_node(HEAD, {**cluster.environment, **of_head}, 1, None, port=port)
    join(cluster)


@pytest.mark.parametrize("kept", [True, False], ids=["with Redis", "without"])
def test_an_actor_outlives_a_head_that_keeps_what_it_knows(redis_port: int, kept: bool) -> None:
    of_head, port = {"RAY_REDIS_ADDRESS": f"127.0.0.1:{redis_port}"} if kept else {}, free_port()
    with machines(extra=PATIENT, port=port, of_head=of_head) as cluster:
        node = cluster.add(resources={"browser": 1})
        keeper = Keeper.options(name="keeper", namespace="waymark", lifetime="detached").remote()
        pid, asked = ray.get(keeper.ask.remote(), timeout=120)
        assert asked == 1
        checks = [answers(LlmSettings(cache=f"redis://127.0.0.1:{redis_port}/{database}")) for database in (0, 1)]
        assert [check.status for (check,) in checks] == [Status.FAIL if kept else Status.OK, Status.OK]
        restarted(cluster, port, of_head)
        if kept:
            wait_until(lambda: any(n["Alive"] and n["NodeManagerAddress"] == node.address for n in ray.nodes()), node)
            again = ray.get_actor("keeper", namespace="waymark")
            assert ray.get(again.ask.remote(), timeout=120) == (pid, 2)
        else:
            with pytest.raises(ValueError, match="keeper"):
                ray.get_actor("keeper", namespace="waymark")
