"""A policy backend of one's own: the servers of ``torch``, and a log of the replies that took long."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from plugs.registry import load
from policy.backend import PolicyBackend, PolicyService, Serving
from policy.client import Completion, PolicyClient, PolicySource, Sampling
from policy.publication import WeightServer
from policy.torch_backend import TORCH, TorchSettings


@dataclass(frozen=True)
class SlowSettings:
    """What a recipe may say in ``policy.options``."""

    __pydantic_config__ = {"extra": "forbid"}
    torch: TorchSettings = TorchSettings()
    slow_s: float = 10.0


class WatchedClient:
    """What a rollout worker asks; this module, which the worker imports, imports no torch."""

    def __init__(self, client: PolicyClient, slow_s: float) -> None:
        self._client, self._slow_s = client, slow_s

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling, *, episode: str) -> Completion:
        """Return the servers' completion, whose errors are its own."""
        began = time.monotonic()
        completion = await self._client.complete(prompt_ids, sampling, episode=episode)
        if (took_s := time.monotonic() - began) > self._slow_s:
            logging.getLogger(__name__).warning("%s waited %.1f s for a reply", episode, took_s)
        return completion


def watched_client(inner: PolicySource, slow_s: float) -> WatchedClient:
    """Make the client in a worker, around the one of the servers' own."""
    make: Callable[..., Any] = load(inner.factory)  # type: ignore[assignment]
    return WatchedClient(make(**inner.options), slow_s)


class WatchedService:
    """The running servers: publication and replacement are theirs, the client is ours."""

    def __init__(self, servers: PolicyService, slow_s: float) -> None:
        self._servers = servers
        self.source = PolicySource(f"{__name__}:watched_client", {"inner": servers.source, "slow_s": slow_s})

    def weight_servers(self) -> Sequence[WeightServer]:
        """Return those of the servers."""
        return self._servers.weight_servers()

    def replace(self, name: str) -> None:
        """Have the servers start this one afresh."""
        self._servers.replace(name)


@contextmanager
def serve(serving: Serving, options: SlowSettings) -> Iterator[PolicyService]:
    """Start the servers, watch them, and end them with the block."""
    with TORCH.serve(serving, options.torch) as servers:
        yield WatchedService(servers, options.slow_s)


SLOW = PolicyBackend(
    settings=SlowSettings,
    processes=lambda options: TORCH.processes(options.torch),
    memory=lambda settings, options, size, published: TORCH.memory(settings, options.torch, size, published),
    preflight=lambda settings, options: TORCH.preflight(settings, options.torch),
    serve=serve,
    planes=TORCH.planes,
)
