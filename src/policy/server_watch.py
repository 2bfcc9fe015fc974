"""Kills policy servers that hang, so that Ray starts them afresh.

Owns the watching thread. Ray notices a server that died, but not one whose process stands still. Invariants: only a
server that has answered since its last start is taken for hung (starting may take long); each is killed once for each
silence; a restarted server comes back with the published weights by itself. No Ray error leaves the thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError

from policy.settings import PolicySettings

_PAUSE_S = 2.0
"""Fixed: a pace within ``policy.hang_timeout_s``."""

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    handle: Any
    reply: Any = None
    asked: float = 0.0
    up: bool = False


class ServerWatch:
    """Watches servers, by name, until closed; use as a context manager while Ray runs."""

    def __init__(self, servers: Mapping[str, ActorHandle], settings: PolicySettings) -> None:
        self._servers = {name: _Watched(handle) for name, handle in servers.items()}
        self._settings = settings
        self._kills = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="policy-server-watch", daemon=True)
        self._thread.start()

    @property
    def kills(self) -> int:
        """How many servers were killed because they hung."""
        return self._kills

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
                ray.get(reply, timeout=_PAUSE_S)
                server.up = True
            elif server.up and now - server.asked > self._settings.hang_timeout_s:
                _LOG.warning("policy server %s gave no sign of life for %.0f s; it is killed", name, now - server.asked)
                server.up, server.reply = False, None
                ray.kill(server.handle, no_restart=False)
                self._kills += 1
        except RayError as error:
            server.up, server.reply = False, None
            _LOG.info("policy server %s is away: %s", name, error)
