"""The embedded sites' control API, as a browser worker uses it: open and drop an episode's session.

Owns ``SiteEndpoint``. Invariants: every request has a deadline; a site server that does not answer is
``EpisodeFailed(infra/site_unreachable)``, one that refuses ``infra/site_control_refused``. Plain HTTP
over asyncio, because a client library would cost more than the request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from replay.records import EpisodeFailed, Failure, FailureKind


@dataclass(frozen=True, slots=True)
class SiteEndpoint:
    """Where the sites' server listens (``port`` on 127.0.0.1) and the ``secret`` of its control API."""

    port: int
    secret: str

    async def open_session(self, token: str, sites: Sequence[str], login: Sequence[str], timeout_s: float) -> None:
        """Give ``token`` a fresh state of ``sites``, the only ones it may visit, logged in at those in ``login``."""
        body = json.dumps({"login": list(login), "sites": list(sites)}).encode()
        await self._request("POST", f"/_control/sessions/{token}", body, timeout_s)

    async def drop_session(self, token: str, timeout_s: float) -> None:
        """Forget the session of ``token``."""
        await self._request("DELETE", f"/_control/sessions/{token}", b"", timeout_s)

    async def _request(self, method: str, path: str, body: bytes, timeout_s: float) -> None:
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nX-Waymark-Control: {self.secret}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                try:
                    writer.write(head.encode() + body)
                    reply = await reader.read()
                finally:
                    writer.close()
        except (OSError, TimeoutError) as error:
            detail = f"the sites' server on port {self.port} did not answer {method} {path}: {error or 'timeout'}"
            raise EpisodeFailed(Failure(FailureKind.INFRA, "site_unreachable", detail)) from error
        status = reply.split(b" ", 2)[1:2]
        if not status or not status[0].startswith(b"2"):
            detail = f"{method} {path}: expected 2xx, found {reply[:200]!r}"
            raise EpisodeFailed(Failure(FailureKind.INFRA, "site_control_refused", detail))
