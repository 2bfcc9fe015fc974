"""Notices that Ray's head is gone, and ends what the run is doing before Ray ends its process without a word.

Owns the watching thread. A head that has restarted knows nothing of this run's actors, and Ray ends a driver that
cannot reach it for a minute; what it does is therefore ended in time, and goes on from its folder with all processes
started afresh. Invariants: the main thread is interrupted once, as by Ctrl-C, and ``lost`` says why.
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
import time
from types import TracebackType

_LOG = logging.getLogger(__name__)
_INTERVAL_S = 2.0
"""Fixed: how often is looked; ``run.head_timeout_s`` says how long the head may be away."""
_CONNECT_TIMEOUT_S = 5.0
"""Fixed: a head that does not accept in this time is asked again within ``run.head_timeout_s``."""


class HeadWatch:
    """Watches the head at ``address`` (``host:port``) until closed; ``limit_s`` seconds without it end the run."""

    def __init__(self, address: str, limit_s: float) -> None:
        host, _, port = address.rpartition(":")
        self._address = (host.strip("[]"), int(port))
        self._limit_s = limit_s
        self._lost = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="ray-head-watch", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> bool:
        """Whether the head was gone for too long."""
        return self._lost

    def __enter__(self) -> HeadWatch:
        return self

    def stop(self) -> None:
        """Interrupt nobody from now on: what ends anyway must not be cut short."""
        self._closing.set()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        self._thread.join(_CONNECT_TIMEOUT_S + _INTERVAL_S)

    def _watch(self) -> None:
        seen = time.monotonic()
        while not self._closing.wait(_INTERVAL_S):
            if self.answers():
                seen = time.monotonic()
            elif time.monotonic() - seen > self._limit_s:
                _LOG.error("Ray's head at %s:%d is gone", *self._address)
                self._lost = True
                main = threading.main_thread().ident
                if main is not None:
                    signal.pthread_kill(main, signal.SIGINT)
                return

    def answers(self) -> bool:
        """Return whether the head accepts a connection now."""
        try:
            socket.create_connection(self._address, timeout=_CONNECT_TIMEOUT_S).close()
        except OSError:
            return False
        return True
