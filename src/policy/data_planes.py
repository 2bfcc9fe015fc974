"""How published weights come to the servers: each reads the file where it lies, or one sender broadcasts it to all.

Owns ``DataPlane`` and both planes. Invariants: a plane only brings the weights: it is the server that compares their
checksum, and ``policy.publication`` that has it prove them; one server's fault is not another's: a broadcast that broke
off is begun again without those that do not answer. Imports neither Ray nor torch.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from policy.client import RequestRefused, ServerUnreachable
from policy.published_weights import PublishedWeights, TransferBroken, WeightsRejected

_ATTEMPTS = ((1 / 3, 1 / 3), (1 / 12, 1 / 4))
"""Fixed: shares of ``policy.publish_timeout_s`` for asking the servers, which may be starting, and for sending. The
second attempt is without those that the first one lost."""
_LOCK_PAUSE_S = 0.1
"""Fixed: a pace within ``policy.publish_timeout_s``."""


class WeightTaker(Protocol):
    """A server as far as it takes weights; raises ``WeightsRejected``, ``ServerUnreachable`` or ``RequestRefused``."""

    name: str
    """The server's, by which a service replaces it."""

    async def devices(self) -> Sequence[str]:
        """Return the kind of device of each process of the server that takes weights: ``cuda`` or another."""
        ...

    async def load_weights(self, weights: PublishedWeights) -> PublishedWeights:
        """Take new weights and return what is served then."""
        ...


class WeightSender(Protocol):
    """Who broadcasts: a process that has the file; raises ``ServerUnreachable`` or ``TransferBroken``."""

    async def invite(self, weights: PublishedWeights, devices: Sequence[str], limit_s: float) -> Sequence[str]:
        """Open a meeting for receivers on these devices, for ``limit_s`` seconds; return an invitation for each."""
        ...

    async def send(self, weights: PublishedWeights, limit_s: float) -> None:
        """Send the file to those that were invited last; return once all of them have it."""
        ...


Answer = PublishedWeights | Exception
DataPlane = Callable[[Sequence[WeightTaker], PublishedWeights, float], Awaitable[Sequence[Answer]]]
"""Brings weights to servers, each within so many seconds; returns what each serves then, or why it has not."""
_FAULTS = (WeightsRejected, ServerUnreachable, RequestRefused)


async def by_file(servers: Sequence[WeightTaker], weights: PublishedWeights, timeout_s: float) -> list[Answer]:
    """Let each server read the file where it lies."""
    return list(await asyncio.gather(*(_taken(server, weights, timeout_s) for server in servers)))


async def _taken(server: WeightTaker, weights: PublishedWeights, timeout_s: float) -> Answer:
    try:
        async with asyncio.timeout(timeout_s):
            return await server.load_weights(weights)
    except TimeoutError:
        return ServerUnreachable(f"no answer within {timeout_s:g} s")
    except _FAULTS as fault:
        return fault


class Broadcast:
    """A data plane in which ``sender`` sends the file to all servers at once, over a process group made for it."""

    def __init__(self, sender: WeightSender) -> None:
        self._sender = sender
        self._busy = threading.Lock()

    async def __call__(
        self, servers: Sequence[WeightTaker], weights: PublishedWeights, timeout_s: float
    ) -> list[Answer]:
        """See ``DataPlane``; one at a time, in whatever thread. The times begin when the one before is over."""
        while not self._busy.acquire(blocking=False):
            await asyncio.sleep(_LOCK_PAUSE_S)
        try:
            return await self._broadcast(servers, weights, timeout_s)
        finally:
            self._busy.release()

    async def _broadcast(
        self, servers: Sequence[WeightTaker], weights: PublishedWeights, timeout_s: float
    ) -> list[Answer]:
        answers: dict[str, Answer] = {}
        left = list(servers)
        for asking, sending in _ATTEMPTS:
            answers |= await self._attempt(left, weights, asking * timeout_s, sending * timeout_s)
            left = [server for server in left if isinstance(answers[server.name], TransferBroken)]
            if not left:
                break
        return [answers[server.name] for server in servers]

    async def _attempt(
        self, servers: Sequence[WeightTaker], weights: PublishedWeights, ask_s: float, limit_s: float
    ) -> dict[str, Answer]:
        """Return what became of each server; those that do not say in ``ask_s`` what they run on are left out."""
        found = await asyncio.gather(*(_devices(server, ask_s) for server in servers))
        answers: dict[str, Answer] = {
            server.name: fault for server, fault in zip(servers, found, strict=True) if isinstance(fault, Exception)
        }
        here = [(s, kinds) for s, kinds in zip(servers, found, strict=True) if not isinstance(kinds, Exception)]
        if not here:
            return answers
        try:
            devices = [kind for _, kinds in here for kind in kinds]
            # Whoever receives gives up a moment before it is given up, so that it can say why.
            invitations = await self._sender.invite(weights, devices, 0.8 * limit_s)
        except (TransferBroken, ServerUnreachable) as fault:
            return answers | {server.name: TransferBroken(str(fault)) for server, _ in here}
        first, taking = 0, {}
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(self._sent(weights, limit_s))
            for server, kinds in here:
                invited = replace(weights, path=invitations[first])
                taking[server.name] = group.create_task(_taken(server, invited, limit_s))
                first += len(kinds)
        sent = sending.result()
        for name, task in taking.items():
            answer = task.result()
            broken = isinstance(answer, TransferBroken) and sent is not None
            answers[name] = TransferBroken(f"{answer}; the sender: {sent}") if broken else answer
        return answers

    async def _sent(self, weights: PublishedWeights, limit_s: float) -> Exception | None:
        try:
            await self._sender.send(weights, limit_s)
        except (TransferBroken, ServerUnreachable) as fault:
            return fault
        return None


async def _devices(server: WeightTaker, timeout_s: float) -> Sequence[str] | Exception:
    try:
        async with asyncio.timeout(timeout_s):
            return await server.devices()
    except TimeoutError:
        return ServerUnreachable(f"it did not say what it runs on within {timeout_s:g} s")
    except _FAULTS as fault:
        return fault
