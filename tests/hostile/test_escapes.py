"""Ways out of a page: none leads to another host, another port, or another scheme.

A listener on every address of this machine, TCP and UDP, stands for Ray's dashboard, a Redis, or another tenant: it
counts what reaches it, and must count nothing.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from environments.browser.environment import BrowserEnvironment
from records.environment import Action
from records.failures import EpisodeFailed
from tests.hostile.hostile_site import trap_task

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

HOSTS = (
    "127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "017700000001", "127.0.0.2", "0.0.0.0", "[::1]",
    "[::ffff:127.0.0.1]", "lab.localhost", "{own}", "other.{own}", "{own}.", "a@127.0.0.1", "{own}:{site}@127.0.0.1",
)  # fmt: skip
"""Spellings of this machine; ``{own}`` is the episode's own host, at a port that is not its site's."""

REQUESTS = """(async (host) => {
  const http = `http://${host}/x`, all = [];
  const made = (tag, more) => document.body.appendChild(Object.assign(document.createElement(tag), more));
  const attempt = make => {
    try { all.push(Promise.resolve(make()).catch(() => {})); } catch { all.push(0); /* refused at once */ }
  };
  const element = (tag, more) => attempt(() => { made(tag, more); });
  attempt(() => fetch(http, {mode: "no-cors"}));
  attempt(() => fetch(http, {mode: "no-cors", method: "POST", body: "x", keepalive: true}));
  attempt(() => { const r = new XMLHttpRequest(); r.open("POST", http); r.send("x"); });
  attempt(() => navigator.sendBeacon(http, "x"));
  attempt(() => { new Image().src = http; });
  attempt(() => { new WebSocket(`ws://${host}/x`); });
  attempt(() => { new EventSource(http); });
  attempt(() => import(http));
  attempt(() => new WebTransport(`https://${host}/x`).ready);
  attempt(() => new SharedWorker(http));
  attempt(() => navigator.serviceWorker.register("/calm"));
  for (const rel of "stylesheet prefetch preconnect dns-prefetch modulepreload preload icon manifest".split(" "))
    element("link", {rel, href: http, as: "image"});
  const rules = JSON.stringify({prerender: [{source: "list", urls: [http]}]});
  element("script", {type: "speculationrules", textContent: rules});
  element("script", {src: http});
  element("iframe", {src: http});
  element("embed", {src: http});
  element("object", {data: http});
  element("video", {src: http});
  element("div", {style: `background: url(${http})`});
  element("style", {textContent: `@font-face { font-family: f; src: url(${http}) } b { font-family: f }`});
  element("b", {textContent: "b"});
  attempt(() => {
    made("a", {href: "#x", ping: http}).click();
  });
  attempt(() => {
    made("iframe", {name: "f"});
    made("form", {action: http, method: "post", target: "f"}).submit();
  });
  const port = host.split(":").at(-1), name = host.slice(host.indexOf("@") + 1, -port.length - 1);
  const at = `${name}:${port}`;
  for (const urls of [`stun:${at}`, `turn:${at}?transport=tcp`, `turn:${at}?transport=udp`])
    attempt(async () => {
      const peer = new RTCPeerConnection({iceServers: [{urls, username: "u", credential: "c"}]});
      peer.createDataChannel("x");
      await peer.setLocalDescription(await peer.createOffer());
    });
  await Promise.race([Promise.all(all), new Promise(done => setTimeout(done, 300))]);
  return all.length;
})"""

_MADE = """const made = (tag, more) =>
  document.body.appendChild(Object.assign(document.createElement(tag), more));"""
NAVIGATIONS = {
    "assigned": "location.href = url",
    "replaced": "location.replace(url)",
    "opened": "open(url)",
    "opened without an opener": "open(url, '_blank', 'noopener')",
    "a link": "made('a', {href: url}).click()",
    "a form": "made('form', {action: url, method: 'post'}).submit()",
    "a refresh": "made('meta', {httpEquiv: 'refresh', content: `0;${url}`})",
    "a frame's parent": "made('iframe', {}).contentWindow.eval(`top.location.href = ${JSON.stringify(url)}`)",
    "a popup": "const w = open('about:blank'); w.location.href = url",
}
ADDRESSES = (
    "http://127.0.0.1:{port}/x", "file:///etc/passwd", "data:text/html,<h1>x", "chrome://version", "devtools://devtools",
    "view-source:http://127.0.0.1:{port}/", "javascript:fetch('http://127.0.0.1:{port}/')", "ftp://127.0.0.1:{port}/",
    "http://169.254.169.254/latest/meta-data/", "about:version", "chrome-extension://x/y", "filesystem:http://x/y",
)  # fmt: skip


class Listener:
    """Counts what comes in at one port, whatever the address and the protocol."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.port = 0

    async def start(self) -> None:
        """Listen on a free port."""
        server = await asyncio.start_server(self._hear, "0.0.0.0", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._servers = [server]
        if socket.has_ipv6:
            self._servers.append(await asyncio.start_server(self._hear, "::1", self.port))
        loop, heard = asyncio.get_running_loop(), self.heard

        class Datagrams(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, addr: object) -> None:
                heard.append(f"UDP {data[:20]!r}")

        self._udp, _ = await loop.create_datagram_endpoint(Datagrams, ("0.0.0.0", self.port))

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heard.append(f"TCP {await reader.read(60)!r}")
        writer.close()

    def close(self) -> None:
        """Listen no more."""
        for server in self._servers:
            server.close()
        self._udp.close()


@pytest_asyncio.fixture(loop_scope="module")
async def listener() -> AsyncIterator[Listener]:
    started = Listener()
    await started.start()
    yield started
    started.close()


async def test_the_listener_hears_every_spelling(listener: Listener) -> None:
    for host in ("127.0.0.1", "127.0.0.2", "::1"):
        _, writer = await asyncio.open_connection(host, listener.port)
        writer.write(b"x")
        writer.close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.sendto(b"x", ("127.0.0.1", listener.port))
    await asyncio.sleep(0.1)
    assert len(listener.heard) == 4


@pytest.mark.parametrize("host", HOSTS)
async def test_no_request_leaves_the_episodes_hosts(env: BrowserEnvironment, listener: Listener, host: str) -> None:
    await env.reset(trap_task())
    page, own = env.slot.tab.page, f"lab.{env.world.token}.localhost"
    target = f"{host.format(own=own, site=env.world.sites.port)}:{listener.port}"
    assert await page.evaluate(f"{REQUESTS}({target!r})") >= 30
    assert await page.evaluate("() => fetch('/calm').then(r => r.ok)"), "its own site must be reached"
    await asyncio.sleep(0.3)
    assert listener.heard == []


@pytest.mark.parametrize("how", NAVIGATIONS)
async def test_no_navigation_leaves_the_episodes_sites(env: BrowserEnvironment, listener: Listener, how: str) -> None:
    await env.reset(trap_task())
    for address in ADDRESSES:
        url = address.format(port=listener.port)
        await env.slot.tab.page.evaluate(f"url => {{ {_MADE} try {{ {NAVIGATIONS[how]} }} catch {{}} }}", url)
        await asyncio.sleep(0.05)
        try:
            seen = await env.step(Action("wait"))
        except EpisodeFailed:
            seen = await env.reset(trap_task())
        assert seen.url.startswith(("__LAB__/", "about:blank")), url
        assert "root:" not in seen.page_text
        for shown in env.slot.context.pages:
            origin = env.slot.addresses.origins[0]
            assert shown.url.startswith((origin, "about:blank", "chrome-error:")) or not shown.url, url
            assert not shown.url.startswith(("file:", "data:", "chrome:", "devtools:", "view-source:", "about:version"))
    assert listener.heard == []


async def test_nothing_is_downloaded(env: BrowserEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = await env.reset(trap_task("/trap/flood/downloads/click"))
    seen = await env.step(Action("click", element_id=seen.find("Go").element_id))
    assert seen.feedback is not None
    assert "was not downloaded" in seen.feedback
    assert list(tmp_path.iterdir()) == []


async def test_no_service_worker_is_installed(env: BrowserEnvironment) -> None:
    await env.reset(trap_task())
    # A page may call what the browser's driver has put out of its reach in more ways than one.
    for register in (
        "navigator.serviceWorker.register('/worker.js')",
        "ServiceWorkerContainer.prototype.register.call(navigator.serviceWorker, '/worker.js')",
    ):
        await env.slot.tab.page.evaluate(f"() => {{ {register}.catch(() => {{}}) }}")
        await asyncio.sleep(0.5)
        count = "() => navigator.serviceWorker.getRegistrations().then(all => all.length)"
        assert await env.slot.tab.page.evaluate(count) == 0, register
