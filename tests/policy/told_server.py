"""A small HTTP server that plays vLLM and answers as it is told."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Answer = tuple[int, object] | None
"""Status and body; None cuts the connection."""


@dataclass
class Told:
    """Answers by path, or what makes them of the request's body; ``heard`` is what was asked, in order.

    Where it has a ``token``, whoever does not send it hears 401, as of ``TokenGuard``.
    """

    answers: dict[str, Answer | Callable[[Any], Answer]]
    pause_s: float = 0.0
    heard: list[tuple[str, Any]] = field(default_factory=list)
    headers: list[bytes] = field(default_factory=list)
    hosts: list[bytes] = field(default_factory=list)
    token: str = ""
    port: int = 0
    under_way: int = 0
    most_under_way: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            target = head.split(b" ", 2)[1].decode()
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
            body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
            said = json.loads(body) if body else None
            self.heard.append((target, said))
            self.headers.append(fields.get(b"authorization", b""))
            self.hosts.append(fields.get(b"host", b""))
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            try:
                await asyncio.sleep(self.pause_s)
            finally:
                self.under_way -= 1
            answer = self.answers[target.partition("?")[0]]
            if self.token and self.headers[-1] != f"Bearer {self.token}".lower().encode():
                answer = (401, b"this server answers its own run only")
            if callable(answer):
                answer = answer(said)
            if answer is not None:
                content = answer[1] if isinstance(answer[1], bytes) else json.dumps(answer[1]).encode()
                start = f"HTTP/1.1 {answer[0]} X\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
                writer.write(start.encode() + content)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client gave up
        finally:
            writer.close()


@asynccontextmanager
async def told(
    pause_s: float = 0.0,
    *,
    at: str = "127.0.0.1",
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    token: str = "",
    **answers: Answer | Callable[[Any], Answer],
) -> AsyncIterator[Told]:
    """A server whose answers are named by their path's last part."""
    paths = {"/inference/v1/generate" if name == "generate" else f"/{name}": a for name, a in answers.items()}
    server_told = Told(paths, pause_s, token=token)
    server = await asyncio.start_server(server_told.serve, at, port, ssl=tls)
    server_told.port = server.sockets[0].getsockname()[1]
    try:
        yield server_told
    finally:
        server.close()
