"""Resetting through the reset server that WebArena set-ups commonly run on port 7565.

Owns ``HttpReset``. The server's side, as found in use: ``GET /reset`` answers 200 when it has begun (older
ones: when it is done) and 418 while another reset runs; ``GET /status`` answers "Ready for duty!" when the
sites are ready, something else with 200 while they are not, 500 after a failure, and 404 on older servers.
Invariant: one deadline bounds the whole reset, each request included.
"""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import urlsplit

from environments.webarena.reset.protocol import reset_failed

_READY = "ready for duty"
_MAX_REPLY = 65536


class HttpReset:
    """Asks a reset server and waits until it says that the sites are ready."""

    def __init__(self, url: str, *, timeout_s: float, poll_s: float, status_timeout_s: float) -> None:
        """Wait ``timeout_s`` for a whole reset and ``status_timeout_s`` for one answer, in seconds."""
        self._url, self._timeout_s, self._poll_s = url.rstrip("/"), timeout_s, poll_s
        self._status_timeout_s = status_timeout_s

    async def reset(self, deployment: str) -> None:
        """Begin a reset of our own and wait for it; one that already runs is waited for first.

        A reset that was under way before does not do: it may have begun before the last episode's changes.
        """
        last = "nothing"
        try:
            async with asyncio.timeout(self._timeout_s):
                while True:
                    status, last = await self._get("/reset", self._timeout_s)
                    if status not in (200, 418):
                        raise reset_failed(f"{self._url}/reset: expected 200 or 418, found {status}: {last}")
                    last = await self._ready()
                    if status == 200:
                        return
        except TimeoutError as error:
            detail = f"{self._url}: sites not ready within {self._timeout_s:g} s; the last answer was {last!r}"
            raise reset_failed(detail) from error
        except OSError as error:
            raise reset_failed(f"{self._url}: the reset server of {deployment} does not answer: {error}") from error

    async def _ready(self) -> str:
        while True:
            try:
                status, text = await self._get("/status", self._status_timeout_s)
            except TimeoutError as error:
                limit = f"no answer within {self._status_timeout_s:g} s"
                raise reset_failed(f"{self._url}/status: {limit}") from error
            if status == 404 or (status == 200 and _READY in text.lower()):
                return text
            if status != 200:
                raise reset_failed(f"{self._url}/status: expected 200, found {status}: {text}")
            await asyncio.sleep(self._poll_s)

    async def _get(self, path: str, timeout_s: float) -> tuple[int, str]:
        """Return status and text of one HTTP/1.0 request, which is never answered in chunks."""
        parts = urlsplit(self._url)
        secure = ssl.create_default_context() if parts.scheme == "https" else None
        port = parts.port or (443 if secure else 80)
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=secure)
            try:
                writer.write(f"GET {parts.path}{path} HTTP/1.0\r\nHost: {parts.netloc}\r\n\r\n".encode())
                reply = await reader.read(_MAX_REPLY)
                while not reader.at_eof() and len(reply) < _MAX_REPLY:
                    reply += await reader.read(_MAX_REPLY)
            finally:
                writer.close()
        head, _, body = reply.partition(b"\r\n\r\n")
        fields = head.split(b" ", 2)
        if len(fields) < 2 or not fields[1].isdigit():
            raise reset_failed(f"{self._url}{path}: expected an HTTP answer, found {reply[:80]!r}")
        return int(fields[1]), " ".join(body.decode("utf-8", "replace").split())[:300]
