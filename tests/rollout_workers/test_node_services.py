"""A kind's service on each node: workers are led to it, find it again, and it ends with them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import ray

from environments.embedded.sessions import SiteEndpoint
from records.failures import EpisodeFailed
from rollout_workers.node_services import NodeServices, connection_of
from rollout_workers.pool import RolloutPool, RolloutStopped
from sites.settings import SitesSettings
from tests.e2e.processes import runs
from tests.rollout_workers.fake_world import HERE, FakeSettings, config, spec
from tests.rollout_workers.ray_cluster import small_ray
from tests.rollout_workers.test_pool import SETTINGS

LIMIT_S = 120.0


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with small_ray():
        yield


def test_workers_are_led_to_the_service_of_their_node_also_when_it_came_back_elsewhere(tmp_path: Path) -> None:
    patient = replace(SETTINGS, failure_floor=100)
    with RolloutPool(config(tmp_path, patient, f"{HERE}:ON_EACH_NODE")) as pool:
        assert pool.run([spec(i, "together") for i in range(6)]).counts["completed"] == 6
        (first,) = services(tmp_path)
        os.kill(int(first), signal.SIGKILL)
        failing = [spec(i, "infra") for i in range(10, 30)]  # a browser in which only this happens is replaced
        assert pool.run(failing).counts["completed"] == 20
        last = services(tmp_path)[-1]
    assert first != last, "the service was started again"
    assert set(connections(tmp_path)) == {first, last}, "hosts were connected with both, and with nothing else"
    wait_until(lambda: not runs(int(last)))


def test_what_keeps_a_service_from_starting_stops_the_run_with_its_reason(tmp_path: Path) -> None:
    worker_config = config(tmp_path, SETTINGS, f"{HERE}:ON_EACH_NODE")
    (tmp_path / "scratch" / "no_service").touch()
    with RolloutPool(worker_config) as pool, pytest.raises(RolloutStopped, match=r"node_service_lost.*no sites here"):
        pool.run([spec(0)])


def test_the_embedded_sites_run_in_an_actor_of_the_node_tell_their_metrics_and_end() -> None:
    services, node = NodeServices("embedded", SitesSettings(), "run"), ray.get_runtime_context().get_node_id()
    try:
        service = services.on(node)
        assert services.on(node) is service, "one a node"
        found = ray.get(service.connection.remote(), timeout=LIMIT_S)
        assert isinstance(found, SiteEndpoint)
        assert services.metrics() == "", "nobody asked for metrics"
        listening = ray.get(service.connection.remote(), timeout=LIMIT_S)
        assert listening == found
    finally:
        services.close()
    with pytest.raises(OSError):
        reach(found.port)


async def test_a_service_that_is_gone_is_a_failure_with_its_type(tmp_path: Path) -> None:
    services, node = NodeServices(f"{HERE}:ON_EACH_NODE", FakeSettings(str(tmp_path)), "run"), "0" * 56
    try:
        with pytest.raises(EpisodeFailed, match="infra/node_service_lost"):
            await connection_of(services.on(node), 60.0)
    finally:
        services.close()


def reach(port: int) -> None:
    """Connect until nobody listens any more."""
    import socket

    ends = time.monotonic() + LIMIT_S
    while time.monotonic() < ends:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        time.sleep(0.2)


def wait_until(done: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < ends
        time.sleep(0.1)


def services(folder: Path) -> list[str]:
    """The process ids of the services that were started."""
    return (folder / "scratch" / "services").read_text().split()


def connections(folder: Path) -> list[str]:
    """What the hosts were connected with."""
    return (folder / "scratch" / "connections").read_text().split()
