"""The policy on torch while it is served: ``PolicyServer`` actors of Ray, watched and ended.

Owns ``TorchService``. Invariants: Ray starts a server again that died, the watch kills one that hangs or could not
start, and each comes back with the published weights; all are ended when the service is. Imports no torch: the servers'
own processes do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import ray
from ray.actor import ActorHandle

from policy.backend import Serving
from policy.client import PolicySource
from policy.publication import WeightServer
from policy.ray_client import RayWeightServer
from policy.server import PolicyServer, start_server
from policy.server_watch import ServerWatch
from policy.settings import PolicySettings
from policy.torch_backend import TorchSettings


class TorchService:
    """Running servers, by name; ``actors`` are the names under which other processes find them."""

    def __init__(
        self,
        servers: Mapping[str, ActorHandle[PolicyServer]],
        actors: Mapping[str, str],
        settings: PolicySettings,
        watch: ServerWatch,
    ) -> None:
        self._watch = watch
        self._servers = dict(servers)
        self._actors = dict(actors)
        self._settings = settings

    @property
    def source(self) -> PolicySource:
        """Clients find the servers by their names, and so outlive a server's restart."""
        return PolicySource("policy.ray_client:named_client", {"servers": self._actors, "settings": self._settings})

    def weight_servers(self) -> Sequence[WeightServer]:
        """Return the servers as takers of weights."""
        limit_s = self._settings.publish_timeout_s
        return [
            RayWeightServer(name, handle, limit_s, partial(self._watch.failure, name))
            for name, handle in self._servers.items()
        ]

    def replace(self, name: str) -> None:
        """Kill a server; Ray starts it again."""
        ray.kill(self._servers[name], no_restart=False)


@contextmanager
def running_servers(serving: Serving, options: TorchSettings) -> Iterator[TorchService]:
    """Start the servers and watch them; end them with the block. Needs a running Ray."""
    # Actors' names are shared by all runs on a cluster.
    actors = {f"server-{i}": f"waymark-{serving.run}-server-{i}" for i in range(options.servers)}
    servers = {
        name: start_server(
            serving.settings,
            options,
            serving.model,
            published_file=serving.published,
            name=actor,
            label=name,
            resources=serving.resources,
            mark=serving.mark,
        )  # fmt: skip
        for name, actor in actors.items()
    }
    try:
        with ServerWatch(servers, serving.settings) as watch:
            yield TorchService(servers, actors, serving.settings, watch)
    finally:
        for handle in servers.values():
            ray.kill(handle)
