"""The lease desk of a run as a named Ray actor, and the way to it from a worker.

Owns nothing but the crossing: what happens to leases is in ``leases_shared`` and ``leases_remote``. Invariants: every
call has a limit; no Ray error leaves this module; an actor that Ray restarted knows of no lease, so it takes every
deployment's state for unknown.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError

from environments.webarena.leases.remote import RemoteLeases
from environments.webarena.leases.shared import OwnerReport, SharedDesk
from environments.webarena.leases.units import Mode, SiteLease
from environments.webarena.settings import WebArenaSettings
from environments.webarena.sites.deployments import make_desk
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

_T = TypeVar("_T")
_MAX_CONCURRENCY = 10_000
_REPORTS_BEFORE_SILENCE = 2


class SiteLeaseActor:
    """A ``SharedDesk`` over the deployments of ``settings``, whose addresses must be in there."""

    def __init__(self, settings: WebArenaSettings) -> None:
        lost_its_memory = ray.get_runtime_context().was_current_actor_reconstructed
        desk = make_desk(
            settings, fresh=settings.fresh_at_start and not lost_its_memory, era=f"{secrets.token_hex(4)}."
        )
        self._desk = SharedDesk(desk, silence_s=settings.lease_silence_s)

    async def acquire(
        self, owner: str, number: int, modes: Mapping[str, Mode], timeout_s: float
    ) -> SiteLease | Failure:
        """See ``SharedDesk.acquire``."""
        return await self._desk.acquire(owner, number, modes, timeout_s)

    async def report(self, report: OwnerReport) -> frozenset[int]:
        """See ``SharedDesk.report``."""
        return await self._desk.report(report)


class RayDeskPort:
    """``DeskPort`` to the actor called ``name``."""

    def __init__(self, name: str, *, patience_s: float) -> None:
        """Wait ``patience_s`` seconds for an answer that needs no waiting at the desk.

        Raises:
            EpisodeFailed: ``infra/leases_unreachable``: there is no actor of that name.
        """
        self._name, self._patience_s = name, patience_s
        try:
            self._actor: Any = ray.get_actor(name)
        except ValueError as error:
            raise self._unreachable(str(error)) from error

    async def acquire(
        self, owner: str, number: int, modes: Mapping[str, Mode], timeout_s: float
    ) -> SiteLease | Failure:
        """See ``DeskPort.acquire``."""
        reference = self._actor.acquire.remote(owner, number, dict(modes), timeout_s)
        answer: SiteLease | Failure = await self._answer(reference, timeout_s + self._patience_s)
        return answer

    async def report(self, report: OwnerReport) -> frozenset[int]:
        """See ``DeskPort.report``."""
        return await self._answer(self._actor.report.remote(report), self._patience_s)

    async def _answer(self, reference: Awaitable[_T], limit_s: float) -> _T:
        answered = False
        try:
            async with asyncio.timeout(limit_s):
                answer = await reference
            answered = True
            return answer
        except TimeoutError as error:
            raise self._unreachable(f"no answer within {limit_s:g} s") from error
        except RayError as error:
            raise self._unreachable(str(error).strip().splitlines()[0]) from error
        finally:
            if not answered:
                ray.cancel(reference)

    def _unreachable(self, detail: str) -> EpisodeFailed:
        return EpisodeFailed(Failure(codes.LEASES_UNREACHABLE, f"lease desk {self._name}: {detail}"))


def start_desk(settings: WebArenaSettings, name: str) -> Any:
    """Start the desk of a run under ``name``; return its actor handle, with which it ends."""
    options: dict[str, Any] = {"name": name, "num_cpus": 0, "max_restarts": -1, "max_concurrency": _MAX_CONCURRENCY}
    return ray.remote(SiteLeaseActor).options(**options).remote(settings)


def named_desk(name: str, silence_s: float) -> RemoteLeases:
    """Return the leases of the desk called ``name``, for one worker; raise ``EpisodeFailed`` where there is none."""
    owner = f"process {os.getpid()} on {socket.gethostname()} ({secrets.token_hex(4)})"
    port = RayDeskPort(name, patience_s=silence_s / _REPORTS_BEFORE_SILENCE)
    return RemoteLeases(port, owner=owner, silence_s=silence_s)
