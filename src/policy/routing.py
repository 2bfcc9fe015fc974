"""A policy client over several servers: which server an episode asks, and what is tried again.

Owns ``RoutedClient`` and the ``PolicyEndpoint`` that it asks. Invariants: every wait ends; one episode's requests go to
one server as long as it answers; a server's reply is taken whole or not at all, so asking again is safe.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence, Set
from typing import Any, Protocol

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_delay, wait_random_exponential

from policy.client import Completion, RequestRefused, Sampling, ServerUnreachable, WrongVersion
from policy.settings import PolicySettings
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure, FailureCode

_FIRST_PAUSE_S = 0.2
"""Fixed: a pace within ``policy.deadline_s``; it doubles."""
_LONGEST_PAUSE_S = 3.0
"""Fixed: the longest of these pauses."""


class PolicyEndpoint(Protocol):
    """One server, as its clients ask it."""

    async def complete(self, prompt_ids: Sequence[int], sampling: Sampling, timeout_s: float) -> Completion:
        """Return one completion within ``timeout_s`` seconds.

        Raises:
            RequestRefused: the model cannot serve it.
            WrongVersion: it names weights that are neither served nor published.
            ServerUnreachable: no answer; ``for_good`` where there will be none.
        """
        ...


class RoutedClient:
    """A ``PolicyClient`` over one or more servers, by name.

    Episodes are spread by rendezvous hashing: when a server is lost or away, only its own episodes move. Each of their
    requests asks one that is away first, and so they are back with it once it is up.
    """

    def __init__(self, servers: Mapping[str, PolicyEndpoint], settings: PolicySettings) -> None:
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
        away: set[str] = set()
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(ServerUnreachable),
            stop=stop_after_delay(settings.deadline_s),
            wait=wait_random_exponential(multiplier=_FIRST_PAUSE_S, max=_LONGEST_PAUSE_S),
            retry_error_callback=_give_up,
        )

        async def attempt() -> Completion:
            if set(self._servers) <= self._lost | wrong | away:
                away.clear()
            server = self._server_of(episode, wrong | away)
            patience_s = max(0.0, min(settings.attempt_timeout_s, deadline - loop.time()))
            try:
                return await self._servers[server].complete(ids, sampling, patience_s)
            except RequestRefused as error:
                raise policy_failure(codes.REQUEST_REFUSED, str(error)) from error
            except WrongVersion as error:
                wrong.add(server)
                if wrong >= set(self._servers) - self._lost:
                    raise policy_failure(codes.WRONG_VERSION, f"policy server {server}: {error}") from error
                raise ServerUnreachable(str(error)) from error
            except ServerUnreachable as error:
                away.add(server)
                if error.for_good:
                    self._lost.add(server)
                raise

        completion: Completion = await retrying(attempt)
        return completion

    def _server_of(self, episode: str, but: Set[str]) -> str:
        live = [name for name in self._servers if name not in self._lost]
        if not live:
            raise policy_failure(codes.SERVERS_LOST, f"none of the policy servers is left: {sorted(self._servers)}")
        return max(
            [name for name in live if name not in but] or live,
            key=lambda name: hashlib.sha256(f"{name}\n{episode}".encode()).digest(),
        )


def policy_failure(code: FailureCode, detail: str) -> EpisodeFailed:
    """Return the error that ends an episode with this code."""
    return EpisodeFailed(Failure(code, detail))


def _give_up(state: RetryCallState) -> Any:
    error = state.outcome.exception() if state.outcome is not None else None
    raise policy_failure(codes.DEADLINE, f"no reply after {state.attempt_number} attempts; the last: {error}")
