"""Kills policy servers that hang, or could not start, so that Ray starts them afresh.

Owns the watching thread. Ray notices a server that died, but not one whose process stands still, or has nothing to
serve with. Invariants: only a server that has answered since its last start is taken for hung (starting may take long);
each is killed once for each silence, and once for each failed start, after a pause that grows; a restarted server comes
back with the published weights by itself. No Ray error leaves the thread.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError, RayTaskError

from policy.client import StartFailed
from policy.settings import PolicySettings

_PAUSE_S = 2.0
"""Fixed: a pace within ``policy.hang_timeout_s``."""
_FIRST_PAUSE_S = 5.0
"""Fixed: what was in a start's way, such as its predecessor's memory on a GPU, is often gone by then; it doubles."""
_LONGEST_PAUSE_S = 300.0
"""Fixed: the longest of these pauses; one that costs no more than a start does."""

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class FailedStarts:
    """The starts of one server that failed since it was last up."""

    reason: str = ""
    _start: str = ""
    _pause_s: float = 0.0
    _again_at: float = 0.0
    _refused: bool = False

    def note(self, failed: StartFailed, now: float) -> float | None:
        """Return the pause before the next start, in seconds; None where this failure is known already."""
        if failed.start == self._start:
            return None
        self._start, self.reason, self._refused = failed.start, str(failed), failed.refused
        self._pause_s = min(2 * self._pause_s or _FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self._again_at = now + self._pause_s
        return self._pause_s

    def due(self, now: float, *, proven: bool) -> bool:
        """Whether to start the server again: once for each failure, after its pause.

        One that was refused waits until a server that was told the same is ``proven`` to come up.
        """
        if now < self._again_at or (self._refused and not proven):
            return False
        self._again_at = math.inf
        return True

    def over(self) -> None:
        """Forget them: the server is up."""
        self.reason, self._start, self._pause_s = "", "", 0.0


@dataclass(slots=True)
class _Watched:
    handle: Any
    failed: FailedStarts = field(default_factory=FailedStarts)
    reply: Any = None
    asked: float = 0.0
    up: bool = False


class ServerWatch:
    """Watches servers, by name, until closed; use as a context manager while Ray runs."""

    def __init__(self, servers: Mapping[str, ActorHandle], settings: PolicySettings) -> None:
        self._servers = {name: _Watched(handle) for name, handle in servers.items()}
        self._settings = settings
        self._kills = 0
        self._proven = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="policy-server-watch", daemon=True)
        self._thread.start()

    @property
    def kills(self) -> int:
        """How many servers were killed because they hung."""
        return self._kills

    def failure(self, name: str) -> str:
        """Return why the last start of a server failed; empty where it has come up since."""
        return self._servers[name].failed.reason

    def close(self) -> None:
        """Stop watching."""
        self._closing.set()
        self._thread.join(_PAUSE_S + self._settings.hang_timeout_s)

    def __enter__(self) -> ServerWatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _watch(self) -> None:
        while not self._closing.wait(_PAUSE_S):
            for name, server in self._servers.items():
                self._look_after(name, server, time.monotonic())

    def _look_after(self, name: str, server: _Watched, now: float) -> None:
        try:
            if server.reply is None:
                server.reply, server.asked = server.handle.ping.remote(), now
            if ray.wait([server.reply], timeout=0)[0]:
                reply, server.reply = server.reply, None
                failed = _why_not_up(reply)
                server.up = failed is None
                if failed is not None:
                    self._start_again(name, server, failed, now)
                else:
                    self._proven = True
                    server.failed.over()
            elif server.up and now - server.asked > self._settings.hang_timeout_s:
                _LOG.warning("policy server %s gave no sign of life for %.0f s; it is killed", name, now - server.asked)
                server.up, server.reply = False, None
                ray.kill(server.handle, no_restart=False)
                self._kills += 1
        except RayError as error:
            server.up, server.reply = False, None
            _LOG.info("policy server %s is away: %s", name, error)

    def _start_again(self, name: str, server: _Watched, failed: StartFailed, now: float) -> None:
        pause_s = server.failed.note(failed, now)
        if pause_s is not None and failed.refused and not self._proven:
            _LOG.error("%s; it is not started again unless another server comes up", failed)
        elif pause_s is not None:
            _LOG.warning("%s; it is started again in %.0f s", failed, pause_s)
        if server.failed.due(now, proven=self._proven):
            ray.kill(server.handle, no_restart=False)


def _why_not_up(reply: Any) -> StartFailed | None:
    """Return what a server says whose start failed, None where it is up; raise ``RayError`` where it says nothing."""
    try:
        ray.get(reply, timeout=_PAUSE_S)
    except RayTaskError as error:
        if isinstance(error.cause, StartFailed):
            return error.cause
        raise
    return None
