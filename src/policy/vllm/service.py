"""vLLM while it serves a policy: servers started as actors of Ray, or found at their URLs; watched, and ended.

Owns ``running_servers`` and ``found_servers``. Invariants: a server that died or hangs comes back with the published
weights; one that was found and started again by others is given them again; what was started here ends here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

import ray
from ray.actor import ActorHandle

from policy.backend import Serving
from policy.client import PolicySource, RequestRefused
from policy.publication import ServerUnreachable, WeightServer
from policy.published_weights import PublishedWeights, WeightsRejected, read_published
from policy.ray_client import RayWeightServer
from policy.server_watch import ServerWatch
from policy.tokenizer import TextTokenizer
from policy.vllm.api import VllmApi
from policy.vllm.backend import VllmSettings
from policy.vllm.server import VllmServer

_FACTORY = "policy.vllm.client:vllm_client"
_LOOK_PAUSE_S = 5.0
"""Fixed: a pace within ``policy.deadline_s``."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class VllmService:
    """A ``policy.backend.PolicyService`` over servers by name; ``again`` starts one afresh."""

    source: PolicySource
    servers: Mapping[str, WeightServer]
    again: Callable[[str], None]

    def weight_servers(self) -> Sequence[WeightServer]:
        """Return the servers as takers of weights."""
        return list(self.servers.values())

    def replace(self, name: str) -> None:
        """Start a server afresh, or give it once more what is published."""
        self.again(name)


@contextmanager
def running_servers(serving: Serving, options: VllmSettings) -> Iterator[VllmService]:
    """Start the servers and watch them; end them with the block. Needs a running Ray."""
    # Actors' names are shared by all runs on a cluster.
    actors = {f"server-{i}": f"waymark-{serving.run}-server-{i}" for i in range(options.servers)}
    token = secrets.token_hex(16)
    handles = {name: _start(serving, options, actor, token) for name, actor in actors.items()}
    limit_s = serving.settings.publish_timeout_s + options.start_timeout_s  # the first publication waits for the start
    servers = {name: RayWeightServer(name, handle, limit_s) for name, handle in handles.items()}
    source = PolicySource(_FACTORY, _client_options(serving, options, actors, token))
    try:
        with ServerWatch(handles, serving.settings):
            yield VllmService(source, servers, lambda name: ray.kill(handles[name], no_restart=False))
    finally:
        for handle in handles.values():
            ray.kill(handle)


def _start(serving: Serving, options: VllmSettings, name: str, token: str) -> ActorHandle[VllmServer]:
    actor = ray.remote(VllmServer).options(
        name=name,
        num_cpus=options.cpus,
        num_gpus=options.gpus,
        max_restarts=options.restarts,
        max_task_retries=0,
    )
    handle: Any = actor.remote(
        serving.settings, options, serving.model, str(serving.published), options.interpreter, token
    )
    return cast("ActorHandle[VllmServer]", handle)


@contextmanager
def found_servers(serving: Serving, options: VllmSettings) -> Iterator[VllmService]:
    """Find the servers of ``policy.options.urls`` and watch what they serve; nothing of them is started or ended."""
    token = os.environ.get(options.token_variable, "")
    urls = [address for url in options.urls for address in _addresses(url)]
    servers = {url: FoundServer(url, token, options.drain_timeout_s) for url in urls}
    source = PolicySource(_FACTORY, _client_options(serving, options, {url: url for url in urls}, token))
    watch = _PublicationWatch(serving, list(servers.values()))
    try:
        yield VllmService(source, servers, watch.look_at)
    finally:
        watch.close()


class FoundServer:
    """A ``policy.publication.WeightServer`` at a URL."""

    def __init__(self, url: str, token: str, drain_timeout_s: float) -> None:
        self.name = url
        self._token = token
        self._drain_timeout_s = drain_timeout_s

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        """Hand over weights; raise ``WeightsRejected`` or ``ServerUnreachable``."""
        async with VllmApi(self.name, self._token) as api:
            return await api.take_weights(weights, drain_timeout_s=self._drain_timeout_s)

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        """Return the server's log-probabilities (A,); raise ``ServerUnreachable``."""
        async with VllmApi(self.name, self._token) as api:
            return await api.score(prompt_ids, action_ids)

    async def serves(self, weights: PublishedWeights) -> bool:
        """Whether these weights are served; raise ``ServerUnreachable``."""
        async with VllmApi(self.name, self._token) as api:
            served = await api.served()
        return (served.version, served.checksum) == (weights.version, weights.checksum)


class _PublicationWatch:
    """Gives servers that others started again what is published, in a thread, until closed."""

    def __init__(self, serving: Serving, servers: Sequence[FoundServer]) -> None:
        self._serving = serving
        self._servers = {server.name: server for server in servers}
        self._closing = threading.Event()
        self._looking = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="publication-watch", daemon=True)
        self._thread.start()

    def look_at(self, name: str) -> None:
        """Give a server what is published, if it serves anything else."""
        with self._looking:
            asyncio.run(self._catch_up(self._servers[name]))

    def close(self) -> None:
        """Stop watching."""
        self._closing.set()
        self._thread.join(_LOOK_PAUSE_S + self._serving.settings.publish_timeout_s)

    def _watch(self) -> None:
        while not self._closing.wait(_LOOK_PAUSE_S):
            for name in self._servers:
                self.look_at(name)

    async def _catch_up(self, server: FoundServer) -> None:
        if not self._serving.published.is_file():
            return
        try:
            async with asyncio.timeout(self._serving.settings.publish_timeout_s):
                weights = read_published(self._serving.published)
                if not await server.serves(weights):
                    await server.load_weights(weights)
        except (TimeoutError, WeightsRejected, RequestRefused, ServerUnreachable) as error:
            _LOG.warning("policy server %s does not take what is published: %s", server.name, error)


def _client_options(
    serving: Serving, options: VllmSettings, addresses: Mapping[str, str], token: str
) -> dict[str, object]:
    stop_ids = TextTokenizer.load(serving.model).stop_ids
    asked = {"token": token, "stop_ids": stop_ids, "seeds": options.seeds}
    return {"servers": dict(addresses), "settings": serving.settings, **asked}


def _addresses(url: str) -> list[str]:
    """Return one URL for each address that the host's name has: a headless service names each of its servers."""
    parts = urlsplit(url)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 80, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ValueError(f"policy.options.urls: {url} names no host: {error}") from error
    hosts = dict.fromkeys(f"[{place[4][0]}]" if place[0] == socket.AF_INET6 else str(place[4][0]) for place in found)
    port = f":{parts.port}" if parts.port else ""
    return [urlunsplit((parts.scheme, f"{host}{port}", parts.path.rstrip("/"), "", "")) for host in hosts]
