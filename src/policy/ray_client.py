"""Ask policy servers that are Ray actors, within deadlines.

Owns ``RayEndpoint`` and ``named_client`` (the rollouts' side) and ``RayWeightServer`` (the publication's side).
Invariants: every wait ends; a reply is repeatable by its seed; no Ray error leaves this module.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorDiedError, RayError, RayTaskError

from policy.client import Completion, RequestRefused, Sampling, ServerUnreachable, StartFailed, WrongVersion
from policy.published_weights import PublishedWeights, WeightsRejected
from policy.routing import RoutedClient, policy_failure
from policy.settings import PolicySettings
from records import failure_codes as codes

_Result = TypeVar("_Result")
_SENDER = "the sender of weights"


class RayEndpoint:
    """A ``policy.routing.PolicyEndpoint`` that is a ``PolicyServer`` actor."""

    def __init__(self, name: str, handle: ActorHandle) -> None:
        self._who = f"policy server {name}"
        self._handle = handle

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling, timeout_s: float) -> Completion:
        """Return one completion; see ``PolicyEndpoint``."""
        return await ask_actor(self._handle.complete.remote(prompt_ids, sampling), self._who, timeout_s)


def actor_client(servers: Mapping[str, ActorHandle], settings: PolicySettings) -> RoutedClient:
    """Return a client of servers given by their actors."""
    return RoutedClient({name: RayEndpoint(name, handle) for name, handle in servers.items()}, settings)


def named_client(servers: Mapping[str, str], settings: PolicySettings) -> RoutedClient:
    """Return a client of servers given by the names of their actors.

    Names cross to other processes as plain text, and so outlive a restart of whoever holds them.

    Raises:
        EpisodeFailed: kind policy, code ``servers_lost``: there is no actor of such a name.
    """
    return actor_client({name: named_actor(actor) for name, actor in servers.items()}, settings)


def named_actor(name: str) -> ActorHandle:
    """Return a policy server's actor; raise ``EpisodeFailed`` (``servers_lost``) where there is none of this name."""
    try:
        return ray.get_actor(name)
    except ValueError as error:
        raise policy_failure(codes.SERVERS_LOST, str(error)) from error


class RayWeightServer:
    """A ``policy.publication.WeightServer`` that is a Ray actor; ``failure`` says why its last start failed."""

    def __init__(self, name: str, handle: ActorHandle, timeout_s: float, failure: Callable[[], str] = str) -> None:
        self.name = name
        self._who = f"policy server {name}"
        self._handle = handle
        self._timeout_s = timeout_s
        self._failure = failure

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        """Hand over weights; raise ``WeightsRejected`` or ``ServerUnreachable``."""
        return await self._asked(self._handle.load_weights.remote(weights))

    async def devices(self) -> Sequence[str]:
        """Return what the server runs on; raise ``ServerUnreachable``."""
        return await self._asked(self._handle.devices.remote())

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        """Return the server's log-probabilities (A,); raise ``ServerUnreachable``."""
        return await self._asked(self._handle.score.remote(prompt_ids, action_ids))

    async def _asked(self, reference: Awaitable[_Result]) -> _Result:
        try:
            return await ask_actor(reference, self._who, self._timeout_s)
        except StartFailed:
            raise
        except ServerUnreachable as error:
            if failure := self._failure():
                raise ServerUnreachable(f"{error}; before that, {failure}", for_good=error.for_good) from error
            raise


class RayWeightSender:
    """A ``policy.data_planes.WeightSender`` that is a Ray actor."""

    def __init__(self, handle: ActorHandle) -> None:
        self._handle = handle

    async def invite(self, weights: PublishedWeights, devices: Sequence[str], limit_s: float) -> Sequence[str]:
        """Open a meeting; see ``WeightSender``."""
        asked: Awaitable[list[str]] = self._handle.invite.remote(weights.path, tuple(devices), limit_s)
        return await ask_actor(asked, _SENDER, limit_s)

    async def send(self, weights: PublishedWeights, limit_s: float) -> None:
        """Send the file to those invited; see ``WeightSender``."""
        await ask_actor(self._handle.send.remote(weights.path), _SENDER, limit_s)


async def ask_actor(reference: Awaitable[_Result], who: str, timeout_s: float) -> _Result:
    """Wait for the reply of an actor, called ``who``; turn what Ray raises into this package's errors."""
    try:
        return await asyncio.wait_for(reference, timeout_s)
    except TimeoutError as error:
        # The server drops the request, so that it does not generate for nobody.
        ray.cancel(reference)
        raise ServerUnreachable(f"{who} did not answer within {timeout_s:.1f} s") from error
    except RayTaskError as error:
        cause = error.cause
        if isinstance(cause, RequestRefused | WeightsRejected | WrongVersion | ServerUnreachable):
            raise cause from None
        raise ServerUnreachable(f"{who} failed: {cause!r}") from error
    except ActorDiedError as error:
        raise ServerUnreachable(f"{who} is dead: {error}", for_good=True) from error
    except RayError as error:
        raise ServerUnreachable(f"{who} is not reachable: {error}") from error
