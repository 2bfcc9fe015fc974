"""vLLM while it serves a policy: servers started as actors of Ray, or found at their URLs; watched, and ended.

Owns ``running_servers`` and ``found_servers``. Invariants: a server that died, hangs or could not start comes back with
the published weights; one that was found and started again by others is given them again; what was started here ends
here.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import ray
from ray.actor import ActorHandle

from policy.backend import Serving
from policy.client import PolicySource, RequestRefused, ServerUnreachable
from policy.data_planes import DataPlane, by_file
from policy.publication import WeightServer
from policy.published_weights import PublishedWeights, WeightsRejected, current_weights, for_others
from policy.ray_client import RayWeightServer
from policy.server_watch import ServerWatch
from policy.tokenizer import TextTokenizer
from policy.vllm.api import VllmApi, reply_token
from policy.vllm.backend import VllmSettings
from policy.vllm.places import Place, places, read_token
from policy.vllm.server import VllmServer
from records.stores.working_copy import local_path
from telemetry import meter

_FACTORY = "policy.vllm.client:vllm_client"
_LOOK_PAUSE_S = 5.0
"""Fixed: a pace within ``policy.deadline_s``."""
_LOCK_PAUSE_S = 0.1
"""Fixed: a pace within ``policy.publish_timeout_s``."""
_LINK_S = 7200.0
"""Fixed: longer than a server takes to fetch a file; whoever has the link reads that one file until then."""
Published = Callable[[], PublishedWeights | None]
"""Says what is published now."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class VllmService:
    """A ``policy.backend.PolicyService`` over servers by name; ``again`` is what replaces one."""

    source: PolicySource
    servers: Mapping[str, WeightServer]
    again: Callable[[str], None]

    def weight_servers(self) -> Sequence[WeightServer]:
        """Return the servers as takers of weights."""
        return list(self.servers.values())

    def replace(self, name: str) -> None:
        """Start a server afresh, or keep one that is not ours from answering until the next publication."""
        self.again(name)


@contextmanager
def running_servers(serving: Serving, options: VllmSettings) -> Iterator[VllmService]:
    """Start the servers and watch them; end them with the block. Needs a running Ray."""
    # Actors' names are shared by all runs on a cluster.
    actors = {f"server-{i}": f"waymark-{serving.run}-server-{i}" for i in range(options.servers)}
    token = secrets.token_hex(16)
    handles = {name: _start(serving, options, actor, token) for name, actor in actors.items()}
    limit_s = serving.settings.publish_timeout_s
    source = PolicySource(_FACTORY, _client_options(serving, options, actors, token))
    try:
        with ServerWatch(handles, serving.settings) as watch:
            servers = {
                name: RayWeightServer(name, handle, limit_s, partial(watch.failure, name))
                for name, handle in handles.items()
            }
            yield VllmService(source, servers, lambda name: ray.kill(handles[name], no_restart=False))
    finally:
        for handle in handles.values():
            ray.kill(handle)


def _start(serving: Serving, options: VllmSettings, name: str, token: str) -> ActorHandle[VllmServer]:
    actor = ray.remote(VllmServer).options(
        name=name,
        num_cpus=options.cpus,
        num_gpus=options.gpus,
        memory=options.memory_mb * 2**20,
        resources=dict(serving.resources),
        max_restarts=-1 if options.restarts is None else options.restarts,
        max_task_retries=0,
    )
    log_file = serving.logs / f"vllm-{name.rpartition('-')[2]}.log"
    measured = {"label": f"server-{name.rpartition('-')[2]}", "metrics": meter.run_name()}
    serving = replace(serving, plane=by_file)  # a server of ours that starts again reads the file
    handle: Any = actor.remote(serving, options, log_file=log_file, python=options.interpreter, token=token, **measured)
    return cast("ActorHandle[VllmServer]", handle)


@contextmanager
def found_servers(serving: Serving, options: VllmSettings) -> Iterator[VllmService]:
    """Find the servers of ``policy.options.urls`` and watch what they serve; nothing of them is started or ended."""
    token = read_token(options.token_variable)
    at = {str(place): place for place in places(options.urls)}
    adapters = serving.adapter_rank > 0
    servers = {
        name: FoundServer(place, token, options.drain_timeout_s, adapters=adapters) for name, place in at.items()
    }
    source = PolicySource(_FACTORY, _client_options(serving, options, at, token))
    watch = _PublicationWatch(serving, servers)
    try:
        yield VllmService(source, servers, watch.refuse)
    finally:
        watch.close()


class FoundServer:
    """A ``policy.publication.WeightServer`` at a URL; takes weights from one caller at a time, in any thread."""

    def __init__(self, place: str | Place, token: str, drain_timeout_s: float, *, adapters: bool = False) -> None:
        self.name = str(place)
        self._place = place
        self._token = token
        self._adapters = adapters
        self._drain_timeout_s = drain_timeout_s
        self._busy = threading.Lock()
        self.refused = False
        """Whether its answers to the probes were wrong; it is left alone until the next publication."""

    async def devices(self) -> Sequence[str]:
        """Return the kind of device of each worker; raise ``ServerUnreachable``."""
        async with self._api() as api:
            return await api.devices()

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        """Hand over weights; raise ``WeightsRejected`` or ``ServerUnreachable``."""
        async with self._alone(), self._api() as api:
            taken = await self._hand_over(api, weights)
            self.refused = False
            return taken

    async def catch_up(self, published: Published, plane: DataPlane, timeout_s: float) -> None:
        """Hand over by ``plane`` what is ``published``, where others are served and the server is not refused.

        Raises:
            WeightsRejected, ServerUnreachable, RequestRefused: the server has not taken it.
        """
        weights = published()
        async with self._api() as api:
            served = await api.served()
        if weights is None or self.refused or _same(served, weights):
            return
        (answer,) = await plane([_Behind(self, published)], weights, timeout_s)
        if isinstance(answer, Exception):
            raise answer

    async def _take_again(self, weights: PublishedWeights, published: Published) -> PublishedWeights:
        async with self._alone(), self._api() as api:
            now = published()
            if self.refused or now is None or not _same(now, weights):
                raise ServerUnreachable(f"{self.name} was given other weights meanwhile")
            return await self._hand_over(api, weights)

    async def _hand_over(self, api: VllmApi, weights: PublishedWeights) -> PublishedWeights:
        there = await asyncio.to_thread(for_others, weights, _LINK_S)
        return await api.take_weights(there, drain_timeout_s=self._drain_timeout_s)

    async def refuse(self) -> None:
        """Let the server's replies name no version, so that nobody takes them; raise ``ServerUnreachable``."""
        self.refused = True
        async with self._alone(), self._api() as api:
            await api.disown()

    def _api(self) -> VllmApi:
        return VllmApi(self._place, self._token, adapters=self._adapters)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        while not self._busy.acquire(blocking=False):
            await asyncio.sleep(_LOCK_PAUSE_S)
        try:
            yield
        finally:
            self._busy.release()

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        """Return the server's log-probabilities (A,); raise ``RequestRefused`` or ``ServerUnreachable``."""
        async with self._api() as api:
            return await api.score(prompt_ids, action_ids)


class _Behind:
    """A server that others started again, as a ``WeightTaker``: what is published meanwhile goes first."""

    def __init__(self, server: FoundServer, published: Published) -> None:
        self.name = server.name
        self._server, self._published = server, published

    async def devices(self) -> Sequence[str]:
        """See ``FoundServer``."""
        return await self._server.devices()

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        """Hand over weights, unless others are published by now."""
        return await self._server._take_again(weights, self._published)


def _same(one: PublishedWeights, other: PublishedWeights) -> bool:
    return (one.version, one.checksum) == (other.version, other.checksum)


class _PublicationWatch:
    """Gives servers that others started again what is published, in a thread, until closed."""

    def __init__(self, serving: Serving, servers: Mapping[str, FoundServer]) -> None:
        self._serving = serving
        self._servers = dict(servers)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="publication-watch", daemon=True)
        self._thread.start()

    def refuse(self, name: str) -> None:
        """Keep a server from answering that missed a publication."""
        self._try(name, self._servers[name].refuse())

    def close(self) -> None:
        """Stop watching."""
        self._closing.set()
        self._thread.join(_LOOK_PAUSE_S + self._serving.settings.publish_timeout_s)

    def _watch(self) -> None:
        while not self._closing.wait(_LOOK_PAUSE_S):
            for name, server in self._servers.items():
                self._try(name, self._catch_up(server))

    async def _catch_up(self, server: FoundServer) -> None:
        serving = self._serving
        limit_s = serving.settings.publish_timeout_s
        await server.catch_up(lambda: current_weights(serving.published), serving.plane, limit_s)

    def _try(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            asyncio.run(asyncio.wait_for(work, self._serving.settings.publish_timeout_s))
        except (TimeoutError, WeightsRejected, ServerUnreachable, RequestRefused) as error:
            _LOG.warning("policy server %s does not take what is published: %s", name, error)


def _client_options(
    serving: Serving, options: VllmSettings, addresses: Mapping[str, str | Place], token: str
) -> dict[str, object]:
    stop_ids = TextTokenizer.load(local_path(serving.model)).stop_ids
    asked = {
        "token": reply_token(token),
        "stop_ids": stop_ids,
        "seeds": options.seeds,
        "in_flight": options.most_in_flight,
        "adapters": serving.adapter_rank > 0,
    }
    return {"servers": dict(addresses), "settings": serving.settings, **asked}
