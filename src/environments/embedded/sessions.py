"""Where pages are served, and how an episode gets a state of its own there.

Owns ``SiteSessions``, for sites that need nothing of the kind, and ``SiteEndpoint``, the embedded sites' control API
as a browser worker uses it. Invariants: every request has a deadline, until which a server that is away (it may be
starting afresh) is asked again; one that does not answer is ``EpisodeFailed(infra/site_unreachable)``, one that
refuses ``infra/site_control_refused``. Plain HTTP over asyncio, because a client library would cost more
than the request.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure

SESSION_LOST = 410
"""Status with which the sites answer when an episode's session is gone (a restarted server)."""
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
_PAUSE_S = 0.2
"""Fixed: a pace within the act's deadline."""


@dataclass(frozen=True, slots=True)
class SiteSessions:
    """Pages at ``port`` on 127.0.0.1 that keep nothing; sites that keep something say here how it is forgotten."""

    port: int

    async def open_session(
        self, token: str, sites: Sequence[str], login: Sequence[str], deadline: Deadline, data_seed: int | None = None
    ) -> None:
        """Give ``token`` a fresh state of ``sites``, the only ones it may visit, logged in at those in ``login``.

        Data and layout are of ``data_seed``, else the server's own.
        """

    async def require_session(self, token: str, deadline: Deadline) -> None:
        """Raise ``EpisodeFailed`` where the state of ``token`` was lost, so that nothing is judged by what is left."""

    async def drop_session(self, token: str, deadline: Deadline) -> None:
        """Forget the state of ``token``."""


@dataclass(frozen=True, slots=True)
class SiteEndpoint(SiteSessions):
    """Where the sites' server listens, and the ``secret`` of its control API."""

    secret: str

    async def open_session(
        self, token: str, sites: Sequence[str], login: Sequence[str], deadline: Deadline, data_seed: int | None = None
    ) -> None:
        """Give ``token`` a fresh state of ``sites``; see ``SiteSessions.open_session``."""
        seeded = {} if data_seed is None else {"data_seed": data_seed}
        body = json.dumps({"login": list(login), "sites": list(sites), **seeded}).encode()
        await self._request("POST", f"/_control/sessions/{token}", body, deadline)

    async def require_session(self, token: str, deadline: Deadline) -> None:
        """Raise ``EpisodeFailed(infra/site_session_lost)`` where the server no longer knows ``token``."""
        if await self._request("GET", f"/_control/sessions/{token}", b"", deadline, but=(SESSION_LOST,)):
            detail = "the sites' server no longer has this episode's session (was it restarted?)"
            raise EpisodeFailed(Failure(codes.SITE_SESSION_LOST, detail))

    async def drop_session(self, token: str, deadline: Deadline) -> None:
        """Forget the session of ``token``."""
        await self._request("DELETE", f"/_control/sessions/{token}", b"", deadline, patient=False)

    async def _request(
        self, method: str, path: str, body: bytes, deadline: Deadline, *, but: Sequence[int] = (), patient: bool = True
    ) -> int | None:
        """Send one request; return None where it succeeded, the status where that is one of ``but``.

        A ``patient`` one is sent again, until the deadline, to a server that is away.
        """
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nX-Waymark-Control: {self.secret}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )

        async def answer() -> bytes:
            while not (reply := await self._ask(head.encode() + body)) and patient:
                await asyncio.sleep(_PAUSE_S)
            return reply

        unanswered = f"the sites' server on port {self.port} did not answer {method} {path}"
        with deadline.waiting_for(codes.SITE_UNREACHABLE, unanswered):
            reply = await deadline.run(answer())
        if not reply:
            raise EpisodeFailed(Failure(codes.SITE_UNREACHABLE, unanswered))
        status = int(found[1]) if (found := _STATUS.match(reply)) else 0
        if status in but:
            return status
        if status // 100 != 2:
            detail = f"{method} {path}: expected 2xx, found {reply[:200]!r}"
            raise EpisodeFailed(Failure(codes.SITE_CONTROL_REFUSED, detail))
        return None

    async def _ask(self, request: bytes) -> bytes:
        """Return the whole reply; empty where nobody listens or the connection broke."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                writer.write(request)
                return await reader.read()
            finally:
                writer.close()
        except OSError:
            return b""
