"""Ask policy servers that are Ray actors, within deadlines.

Owns ``RayPolicyClient`` and ``named_client`` (the rollouts' side) and ``RayWeightServer`` (the publication's side).
Invariants: every wait ends; one episode's requests go to one server as long as it lives; a reply is
repeatable by its seed, so asking again is safe; no Ray error leaves this module.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Mapping, Sequence, Set
from typing import Any, TypeVar

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorDiedError, RayError, RayTaskError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_delay, wait_random_exponential

from policy.client import Completion, RequestRefused, Sampling, WrongVersion
from policy.publication import ServerUnreachable
from policy.published_weights import PublishedWeights, WeightsRejected
from policy.settings import PolicySettings
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure, FailureCode

_FIRST_PAUSE_S = 0.2
"""Fixed: a pace within ``policy.deadline_s``; it doubles."""
_LONGEST_PAUSE_S = 3.0
"""Fixed: the longest of these pauses."""

_Result = TypeVar("_Result")


class RayPolicyClient:
    """A ``PolicyClient`` over one or more servers, by name.

    Episodes are spread by rendezvous hashing: when a server is lost, only its own episodes move.
    """

    def __init__(self, servers: Mapping[str, ActorHandle], settings: PolicySettings) -> None:
        if not servers:
            raise ValueError("a policy client needs at least one server")
        self._servers = dict(servers)
        self._settings = settings
        self._lost: set[str] = set()

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling, *, episode: str) -> Completion:
        """Return one completion, asking again and elsewhere until the deadline.

        Raises:
            EpisodeFailed: kind policy; code ``request_refused``, ``servers_lost``, ``wrong_version`` (of every
                server that lives) or ``deadline``.
        """
        settings = self._settings
        ids = [int(i) for i in prompt_ids]
        loop = asyncio.get_running_loop()
        deadline = loop.time() + settings.deadline_s
        wrong: set[str] = set()
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(ServerUnreachable),
            stop=stop_after_delay(settings.deadline_s),
            wait=wait_random_exponential(multiplier=_FIRST_PAUSE_S, max=_LONGEST_PAUSE_S),
            retry_error_callback=_give_up,
        )

        async def attempt() -> Completion:
            server = self._server_of(episode, wrong)
            patience_s = max(0.0, min(settings.attempt_timeout_s, deadline - loop.time()))
            try:
                return await _ask(self._servers[server].complete.remote(ids, sampling), server, patience_s)
            except RequestRefused as error:
                raise _failed(codes.REQUEST_REFUSED, str(error)) from error
            except WrongVersion as error:
                wrong.add(server)
                if wrong >= set(self._servers) - self._lost:
                    raise _failed(codes.WRONG_VERSION, f"policy server {server}: {error}") from error
                raise ServerUnreachable(str(error)) from error
            except ServerUnreachable as error:
                if error.for_good:
                    self._lost.add(server)
                raise

        completion: Completion = await retrying(attempt)
        return completion

    def _server_of(self, episode: str, but: Set[str]) -> str:
        live = [name for name in self._servers if name not in self._lost]
        if not live:
            raise _failed(codes.SERVERS_LOST, f"none of the policy servers is left: {sorted(self._servers)}")
        return max(
            [name for name in live if name not in but] or live,
            key=lambda name: hashlib.sha256(f"{name}\n{episode}".encode()).digest(),
        )


def named_client(servers: Mapping[str, str], settings: PolicySettings) -> RayPolicyClient:
    """Return a client of servers given by the names of their actors.

    Names cross to other processes as plain text, and so outlive a restart of whoever holds them.

    Raises:
        EpisodeFailed: kind policy, code ``servers_lost``: there is no actor of such a name.
    """
    try:
        return RayPolicyClient({name: ray.get_actor(actor) for name, actor in servers.items()}, settings)
    except ValueError as error:
        raise _failed(codes.SERVERS_LOST, str(error)) from error


class RayWeightServer:
    """A ``policy.publication.WeightServer`` that is a Ray actor."""

    def __init__(self, name: str, handle: ActorHandle, timeout_s: float) -> None:
        self.name = name
        self._handle = handle
        self._timeout_s = timeout_s

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        """Hand over weights; raise ``WeightsRejected`` or ``ServerUnreachable``."""
        return await _ask(self._handle.load_weights.remote(weights), self.name, self._timeout_s)

    async def score(self, prompt_ids: Sequence[int], action_ids: Sequence[int]) -> list[float]:
        """Return the server's log-probabilities (A,); raise ``ServerUnreachable``."""
        return await _ask(self._handle.score.remote(prompt_ids, action_ids), self.name, self._timeout_s)


async def _ask(reference: Awaitable[_Result], server: str, timeout_s: float) -> _Result:
    """Wait for a reply; turn what Ray raises into this package's errors."""
    try:
        return await asyncio.wait_for(reference, timeout_s)
    except TimeoutError as error:
        # The server drops the request, so that it does not generate for nobody.
        ray.cancel(reference)
        raise ServerUnreachable(f"policy server {server} did not answer within {timeout_s:.1f} s") from error
    except RayTaskError as error:
        cause = error.cause
        if isinstance(cause, RequestRefused | WeightsRejected | WrongVersion):
            raise cause from None
        raise ServerUnreachable(f"policy server {server} failed: {cause!r}") from error
    except ActorDiedError as error:
        raise ServerUnreachable(f"policy server {server} is dead: {error}", for_good=True) from error
    except RayError as error:
        raise ServerUnreachable(f"policy server {server} is not reachable: {error}") from error


def _give_up(state: RetryCallState) -> Any:
    error = state.outcome.exception() if state.outcome is not None else None
    raise _failed(codes.DEADLINE, f"no reply after {state.attempt_number} attempts; the last: {error}")


def _failed(code: FailureCode, detail: str) -> EpisodeFailed:
    return EpisodeFailed(Failure(code, detail))
