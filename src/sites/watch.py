"""Keeps the site server going: one that has died or hangs is started afresh, on the same port.

Owns the watching thread. Invariants: the server is asked within a deadline and replaced once for each outage; a
restarted server knows no session, so an episode that was under way meets "session lost", never a state in which
nothing has happened; nothing is restarted once ``close`` was called.
"""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from sites.server import STOP_S, SiteServer, SiteServerError
from sites.settings import SitesSettings

_PAUSE_S = 0.5
"""Fixed: a question costs a millisecond."""

_LOG = logging.getLogger(__name__)


class SiteWatch:
    """Watches ``server`` from a thread until closed; use as a context manager inside the server's."""

    def __init__(self, server: SiteServer, settings: SitesSettings) -> None:
        self._server, self._settings = server, settings
        self._restarts = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="site-watch", daemon=True)
        self._thread.start()

    @property
    def restarts(self) -> int:
        """How often the server was started afresh."""
        return self._restarts

    def close(self) -> None:
        """Stop watching; a restart that is under way is waited for."""
        self._closing.set()
        settings = self._settings
        self._thread.join(settings.hang_timeout_s + settings.start_timeout_s + 2 * STOP_S)

    def __enter__(self) -> SiteWatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _watch(self) -> None:
        while not self._closing.wait(_PAUSE_S):
            if self._server.answers(self._settings.hang_timeout_s) or self._closing.is_set():
                continue
            what = "hangs" if self._server.alive else "has died"
            _LOG.warning("the site server %d %s; it is started afresh", self._server.pid, what)
            try:
                self._server.restart()
                self._restarts += 1
            except SiteServerError as error:  # the next turn tries again; episodes fail until the budget ends the run
                _LOG.error("the site server did not come back: %s", error)
