"""Ask servers of vLLM for completions: the rollouts' side, over HTTP.

Owns ``VllmEndpoint`` and ``vllm_client``. Invariants: every wait ends; a client has no more requests under way at a
server than it is told; a server that moved is looked for again. Its address is a place or URL, or the name of the
actor that runs it and knows the URL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from policy.client import Completion, Sampling, ServerUnreachable
from policy.ray_client import ask_actor, named_actor
from policy.routing import RoutedClient
from policy.settings import PolicySettings
from policy.vllm.api import VllmApi
from policy.vllm.places import Place


class VllmEndpoint:
    """A ``policy.routing.PolicyEndpoint``: a place, or the actor of this name, with ``in_flight`` requests at once."""

    def __init__(
        self,
        name: str,
        address: str | Place,
        *,
        token: str,
        stop_ids: Sequence[int],
        seeds: bool,
        in_flight: int,
        adapters: bool = False,
    ) -> None:
        self._name = name
        stays = isinstance(address, Place) or address.startswith("http")
        self._actor = "" if stays else str(address)
        self._address = address
        self._token = token
        self._stop_ids = tuple(stop_ids)
        self._seeds = seeds
        self._adapters = adapters
        self._api: VllmApi | None = None
        self._moved = False
        self._admitted = asyncio.Semaphore(in_flight)

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling, timeout_s: float) -> Completion:
        """Return one completion; see ``PolicyEndpoint``. A request that is given up is dropped by the server."""
        admitted = False
        try:
            async with asyncio.timeout(timeout_s), self._admitted:
                admitted = True
                api = await self._found(timeout_s)
                return await api.complete(prompt_ids, sampling, stop_ids=self._stop_ids, seeds=self._seeds)
        except TimeoutError as error:
            late = "did not answer" if admitted else "had no room for a further request"
            raise ServerUnreachable(f"policy server {self._name} {late} within {timeout_s:.1f} s") from error
        except ServerUnreachable:
            self._moved = self._actor != ""  # it may be back elsewhere
            raise

    async def _found(self, timeout_s: float) -> VllmApi:
        if self._api is not None and not self._moved:
            return self._api
        found = self._address
        if self._actor:
            found = await ask_actor(named_actor(self._actor).url.remote(), f"policy server {self._name}", timeout_s)
        place = found if isinstance(found, Place) else Place(found)
        self._moved = False
        if self._api is None or self._api.place != place:
            gone, self._api = self._api, VllmApi(place, self._token, adapters=self._adapters)
            if gone is not None:
                await gone.close()
        return self._api


def vllm_client(
    servers: Mapping[str, str | Place],
    settings: PolicySettings,
    *,
    token: str,
    stop_ids: Sequence[int],
    seeds: bool,
    in_flight: int,
    adapters: bool = False,
) -> RoutedClient:
    """Return a client of servers given by their addresses: places, URLs, or names of actors."""
    endpoints = {
        name: VllmEndpoint(
            name, address, token=token, stop_ids=stop_ids, seeds=seeds, in_flight=in_flight, adapters=adapters
        )
        for name, address in servers.items()
    }
    return RoutedClient(endpoints, settings)
