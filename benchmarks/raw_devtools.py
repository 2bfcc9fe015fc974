"""The floor for browser steps: as few DevTools calls as an action, and a look at the page, can be done with.

Owns ``RawPage``. It finds the element, gives real input, and returns the document's text and HTML after three idle
turns of its event loop: no element table, no names, no watch for requests or timers, no feedback, nothing refused.
Only a change of document is waited for, since otherwise the old one would be read.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from playwright.async_api import BrowserContext, CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from benchmarks.scripted_pages import Press
from environments.browser.input import Command, commands

_WAIT_S = 10.0
_SCRIPT = """window.navigation?.addEventListener("navigate", event => {
  if (!event.destination.sameDocument) window.leaving = true;
});"""
_WATCH = """(() => {
  const began = performance.now();
  Object.defineProperty(window, "changed", {configurable: true, value: null});
  window.watching?.disconnect();
  window.watching = new MutationObserver(() => {
    const last = performance.now() - began;
    Object.defineProperty(window, "changed", {configurable: true, get: () => [last, performance.now() - began]});
  });
  watching.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
})()"""
_FIND = """(() => {{
  const element = document.querySelectorAll({css})[{nth}];
  element.scrollIntoViewIfNeeded();
  const box = element.getBoundingClientRect();
  if ({typing}) element.select ? element.select() : getSelection().selectAllChildren(element);
  return [box.x + box.width / 2, box.y + box.height / 2];
}})()"""
_CHOOSE = """(() => {{
  const list = document.querySelector({css});
  list.selectedIndex = 0;
  list.dispatchEvent(new Event("change", {{bubbles: true}}));
}})()"""
_LOOK = """(async () => {
  for (let turn = 0; turn < 3 && !window.leaving; turn += 1) await new Promise(resolve => {
    const channel = new MessageChannel();
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(0);
  });
  return window.leaving || !document.body ? null : [document.body.innerText, document.documentElement.outerHTML];
})()"""


class RawPage:
    """One page of a context, driven by DevTools commands."""

    def __init__(self, page: Page, wire: CDPSession) -> None:
        self._page, self._wire = page, wire
        self._arrived = asyncio.Event()
        page.on("domcontentloaded", lambda _: self._arrived.set())

    @classmethod
    async def of(cls, context: BrowserContext) -> RawPage:
        """Open a page."""
        await context.add_init_script(script=_SCRIPT)
        page = await context.new_page()
        return cls(page, await context.new_cdp_session(page))

    async def reset(self, url: str, start: str) -> None:
        """Open ``url``, or stay where a ``start`` expression begins a new episode there, and look."""
        if not (start and self._page.url == url):
            await self._page.goto(url, wait_until="domcontentloaded")
        if start:
            await self._read(start)
        await self._look()

    async def step(self, press: Press) -> None:
        """Act and look."""
        self._arrived.clear()
        if press.kind == "go_backward":
            await self._read("history.back(); window.leaving = true")
        elif press.kind == "select":
            await self._read(_CHOOSE.format(css=json.dumps(press.css)))
        else:
            typing = json.dumps(press.kind == "type")
            at = await self._read(_FIND.format(css=json.dumps(press.css), nth=press.nth, typing=typing))
            await asyncio.gather(*(self._wire.send(*command) for command in _input(press, at)))
        await self._look()

    async def has(self, css: str) -> bool:
        """Whether an element is there and has a box."""
        return bool(await self._read(f"Boolean(document.querySelector({json.dumps(css)})?.getClientRects().length)"))

    async def watch(self) -> None:
        """Note from now on when the page changes last."""
        await self._read(_WATCH)

    async def last_change_ms(self, wait_s: float) -> float:
        """Wait, and return when after ``watch`` the page changed last; 0 where it never did, or goes on changing."""
        await asyncio.sleep(wait_s)
        last, now = await self._read("window.changed ?? [0, 1e9]")
        return float(last) if now - last > 100 * wait_s else 0.0

    async def _look(self) -> None:
        while True:
            try:
                if await self._read(_LOOK) is not None:
                    return
            except PlaywrightError as error:
                if "context" not in error.message and "navigated" not in error.message:
                    raise
            await asyncio.wait_for(self._arrived.wait(), _WAIT_S)

    async def _read(self, expression: str) -> Any:
        told = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        reply = await self._wire.send("Runtime.evaluate", told)
        if "exceptionDetails" in reply:
            raise RuntimeError(f"{self._page.url}: {expression[:80]}: {reply['exceptionDetails']}")
        return reply["result"].get("value")


def _input(press: Press, at: list[float]) -> list[Command]:
    if press.kind == "type":
        return commands([{"text": press.text}])
    button = "right" if press.kind == "right_click" else "left"
    return commands([{"move": at} if press.kind == "hover" else {"press": at, "button": button}])
