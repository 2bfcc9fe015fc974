"""What episodes of one kind are played on, on each node where workers of the kind are.

Owns the actors that run a kind's service, one a node, for kinds whose service listens to its own node alone
(``EnvironmentKind.each_node``). Invariants: a service runs where workers are, and ends with the last of them, since
even an idle actor keeps an autoscaler from taking its node; it ends with the driver; a worker is led to the service of
its own node, and asks again whenever it makes a host, since one that came back may listen elsewhere.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Collection
from contextlib import ExitStack
from typing import Any

import ray
from ray.exceptions import ActorUnavailableError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from environments.kinds import KINDS, Service
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure
from telemetry import meter, ray_sink

_CALLS = 64
"""More than a node has workers."""
_PAUSE_S = 0.2
"""Fixed: a pace within ``rollout.start_timeout_s``."""
_METRICS_S = 3.0
"""Fixed: a scrape waits for no node that is away."""


class NodeService:
    """The service of the kind called ``environment``, in a process of one node; it starts when it is first asked for.

    It records metrics for the run ``metrics``, none where that is empty.
    """

    def __init__(self, environment: str, options: object, metrics: str = "") -> None:
        ray_sink.install(metrics)
        self._environment, self._options = environment, options
        self._stack = ExitStack()
        self._starting = threading.Lock()
        self._service: Service[Any] | None = None

    def connection(self) -> object:
        """Return what leads to the service; raise what the service raises where it does not start."""
        with self._starting:
            if self._service is None:
                kind = KINDS.find(self._environment)
                settings = kind.read(self._options, self._environment)
                self._service = self._stack.enter_context(kind.service(settings))
            return self._service.connection

    def metrics(self) -> str:
        """Return what the service tells in Prometheus' text form; nothing where it is away."""
        told = []
        for read in meter.forwarded():
            try:
                told.append(read())
            except OSError:
                continue
        return "\n".join(told)


def this_process() -> str:
    """Return Ray's id of this process."""
    return str(ray.get_runtime_context().get_worker_id())


def this_node() -> str:
    """Return the id of the node that this process is on."""
    node: str = ray.get_runtime_context().get_node_id()
    return node


async def connection_of(service: Any, limit_s: float) -> object:
    """Return the connection of a node's service, which is asked again while Ray starts it again.

    Raises:
        EpisodeFailed: it does not start, or gives no connection in ``limit_s`` seconds.
    """
    said = f"it gave no sign of life for {limit_s:g} s"
    try:
        async with asyncio.timeout(limit_s):
            while True:
                try:
                    return await service.connection.remote()
                except ActorUnavailableError as error:
                    said = str(error).strip().splitlines()[-1]
                    await asyncio.sleep(_PAUSE_S)
    except TimeoutError as error:
        raise EpisodeFailed(Failure(codes.NODE_SERVICE_LOST, said)) from error
    except RayError as error:
        last = str(error).strip().splitlines()[-1]
        raise EpisodeFailed(Failure(codes.NODE_SERVICE_LOST, last)) from error


class NodeServices:
    """The services of the kind called ``environment``, by node; needs a running Ray."""

    def __init__(self, environment: str, options: object, run: str) -> None:
        self._given = (environment, options, meter.run_name())
        # Names of actors are shared by all runs on a cluster.
        self._prefix = f"waymark-{run}-{environment}-service-{secrets.token_hex(3)}"
        self._actors: dict[str, Any] = {}
        self._stack = ExitStack()
        self._stack.enter_context(meter.forwarding(self.metrics))

    def on(self, node: str) -> Any:
        """Return the actor of ``node``; the first time, make it."""
        if node not in self._actors:
            options: dict[str, Any] = {
                "name": f"{self._prefix}-{node[-12:]}",
                "num_cpus": 0,
                "max_restarts": -1,
                "max_task_retries": 0,
                "max_concurrency": _CALLS,
                "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
            }
            self._actors[node] = ray.remote(NodeService).options(**options).remote(*self._given)
        return self._actors[node]

    def keep(self, nodes: Collection[str]) -> None:
        """End the services of all other nodes."""
        for node in self._actors.keys() - set(nodes):
            ray.kill(self._actors.pop(node))

    def metrics(self) -> str:
        """Return what all services tell in Prometheus' text form; those that do not answer now are left out."""
        asked = [actor.metrics.remote() for actor in list(self._actors.values())]
        ready, late = ray.wait(asked, num_returns=len(asked), timeout=_METRICS_S) if asked else ([], [])
        for reply in late:
            ray.cancel(reply)
        return "\n".join(text for text in map(_told, ready) if text)

    def close(self) -> None:
        """End all services."""
        self._stack.close()
        self.keep(())


def _told(reply: Any) -> str:
    try:
        text: str = ray.get(reply, timeout=_METRICS_S)
    except RayError:
        return ""
    return text
