"""WebSockets, in a real Chromium: those to the task's own origin open, and no other one leaves the browser."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from environments.addresses import embedded_bypass
from environments.browser.process import BrowserProcess
from environments.webarena.sites.episode_addresses import WebArenaAddresses

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

PAGE = "<!doctype html><title>Chat</title>"
OPEN = """async (url) => {
  const socket = new WebSocket(url);
  return await new Promise(done => { socket.onopen = () => done("open"); socket.onerror = () => done("refused"); });
}"""


class Server:
    """Serves a page, and takes every WebSocket."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.port = 0

    async def start(self) -> None:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.heard.append(head)
        key = next((line.partition(": ")[2] for line in head.split("\r\n") if "websocket-key" in line.lower()), "")
        if key:
            digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
            accepted = f"Sec-WebSocket-Accept: {base64.b64encode(digest).decode()}"
            upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade"
            writer.write(f"{upgrade}\r\n{accepted}\r\n\r\n".encode())
            await reader.read(100)
        else:
            answer = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(PAGE)}\r\nConnection: close"
            writer.write(f"{answer}\r\n\r\n{PAGE}".encode())
        writer.close()

    def close(self) -> None:
        """Listen no more."""
        self._server.close()


@pytest_asyncio.fixture(loop_scope="module")
async def servers() -> AsyncIterator[tuple[Server, Server]]:
    own, foreign = Server(), Server()
    await own.start()
    await foreign.start()
    yield own, foreign
    own.close()
    foreign.close()


@pytest.mark.parametrize("kind", ["embedded", "webarena"])
async def test_only_websockets_to_the_tasks_own_origin_open(
    browser: BrowserProcess, servers: tuple[Server, Server], kind: str
) -> None:
    own, foreign = servers
    host = f"lab.e1.localhost:{own.port}"
    bypass = (
        embedded_bypass("e1", own.port) if kind == "embedded" else WebArenaAddresses({"lab": f"http://{host}"}).bypass
    )
    context = await browser.open_context(bypass)
    page = await context.new_page()
    await page.goto(f"http://{host}/")
    assert await page.evaluate(OPEN, f"ws://{host}/socket") == "open"
    asked = len(own.heard)
    for other in (
        f"lab.e2.localhost:{own.port}",
        f"localhost:{own.port}",
        f"127.0.0.1:{own.port}",
        f"lab.e1.localhost:{foreign.port}",
        f"127.0.0.1:{foreign.port}",
        "example.com",
    ):
        for scheme in ("ws", "wss"):
            assert await page.evaluate(OPEN, f"{scheme}://{other}/socket") == "refused", (scheme, other)
    assert len(own.heard) == asked
    assert foreign.heard == []
    await context.close()
