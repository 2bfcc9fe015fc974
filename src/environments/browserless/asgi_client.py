"""Requests to an ASGI application in this process, without sockets.

Owns one cookie jar per instance (by host) and the following of redirects. Invariant: what the application raises
becomes ``EpisodeFailed(infra/site_error)``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import unquote, urlencode, urljoin, urlsplit

from environments.browserless.effects import PageRequest
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure
from records.supervision import supervised

Message = MutableMapping[str, Any]
AsgiApp = Callable[
    [MutableMapping[str, Any], Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 20


@dataclass(frozen=True, slots=True)
class Reply:
    """One final answer: the address after redirects, the status and the text of the page."""

    url: str
    status: int
    text: str


class AsgiClient:
    """Fetches pages from ``app``; the act that asks for them bounds the wait."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app
        self._cookies: dict[str, SimpleCookie] = {}

    async def fetch(self, request: PageRequest, allows: Callable[[str], bool]) -> Reply:
        """Send a request and follow redirects as a browser does; a refused address gives status 0 and no text."""
        method, url, form = request.method, request.url, request.form
        for _ in range(_MAX_REDIRECTS):
            if not allows(url):
                return Reply(url, 0, "")
            status, headers, body = await self._send(method, url, form)
            location = headers.get("location")
            if status not in _REDIRECTS or location is None:
                return Reply(url, status, body.decode("utf-8", errors="replace"))
            fragment = urlsplit(url).fragment
            url = urljoin(url, location)
            if fragment and not urlsplit(url).fragment:
                url = f"{url}#{fragment}"
            if status not in (307, 308):
                method, form = "GET", ()
        raise _site_error(f"{request.method} {request.url}: more than {_MAX_REDIRECTS} redirects")

    async def _send(
        self, method: str, url: str, form: tuple[tuple[str, str], ...]
    ) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(url)
        body = urlencode(form).encode() if method == "POST" else b""
        jar = self._cookies.setdefault(parts.netloc, SimpleCookie())
        headers = [(b"host", parts.netloc.encode()), (b"accept", b"text/html"), (b"content-length", b"%d" % len(body))]
        if method == "POST":
            headers.append((b"content-type", b"application/x-www-form-urlencoded"))
        if jar:
            headers.append((b"cookie", "; ".join(f"{k}={m.value}" for k, m in jar.items()).encode()))
        scope: dict[str, Any] = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": parts.scheme,
            "path": unquote(parts.path) or "/", "raw_path": parts.path.encode(), "query_string": parts.query.encode(),
            "root_path": "", "headers": headers, "client": ("127.0.0.1", 1), "server": (parts.hostname or "", 80),
        }  # fmt: skip
        status, got, content = await self._run(f"{method} {url}", scope, body)
        for name, value in got:
            if name == "set-cookie":
                jar.load(value)
        return status, dict(got), content

    async def _run(self, what: str, scope: dict[str, Any], body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        started: dict[str, Any] = {}
        chunks: list[bytes] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
            elif message["type"] == "http.response.body":
                chunks.append(message.get("body", b""))

        raised = await supervised(self._app(scope, receive, send))
        if raised is not None or not started:
            raise _site_error(f"{what}: {raised!r}")
        headers = [(k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in started.get("headers", ())]
        return int(started["status"]), headers, b"".join(chunks)


def _site_error(detail: str) -> EpisodeFailed:
    return EpisodeFailed(Failure(codes.SITE_ERROR, detail))
