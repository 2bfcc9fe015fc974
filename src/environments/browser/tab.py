"""One tab of a real browser: sends the page script its work and waits for pages it opens.

Owns the calls into the page. Invariants: every wait is bounded by the settings; a step settles and looks in one call
where no page load happens and in two where one does; Playwright's errors never leave this module untyped.

Real input goes to the browser, not to the page, so a step with it has three parts: the page says what to press,
a call that will settle and look is left waiting in the page, then the input is given and the call released.
The call must wait before the input is given: once a page is being left, Chromium holds new calls back. It is sent
together with the first.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from typing import Any

from playwright.async_api import Dialog, Page, Worker
from playwright.async_api import Error as PlaywrightError

from environments.browser.calls import failure, typed
from environments.browser.input import commands
from environments.browser.page_painter import COPY
from environments.browser.page_reply import LARGE, MAX_FEEDBACK, MAX_REPLY, PageReply, read_inputs, read_result
from environments.browser.page_scripts import PAGE_SCRIPT, WORKER_SCRIPT
from environments.browser.settings import BrowserSettings
from environments.browser.wire import Wire
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure
from records.supervision import end_tasks

# Syntax only, because a page can replace every function; what is no text, or too long a one, never leaves the page.
_BOUNDED = """(async () => {{ try {{ const said = await ({work});
  return typeof said === "string" && said.length <= {limit} ? said : null; }} catch (thrown) {{
  const said = thrown instanceof Object ? thrown.message : thrown;
  throw typeof said === "string" && said.length < 1000 ? said : "an error without a message"; }} }})()"""
_STEP = "window.__waymark ? window.__waymark.step({action}, {options}) : 'null'"
_BEGIN = "window.__waymark ? window.__waymark.begin({action}, {options}) : 'null'"
_FINISH = "window.__waymark ? window.__waymark.finish({options}) : 'null'"
_REST = "window.__waymark ? window.__waymark.rest({load_ms}, {quiet_ms}) : 'null'"
_HANDED = "window.__waymark?.handed()"
_QUIETEN = """(() => {
  try { sessionStorage.clear(); } catch { /* a document without an origin has none */ }
  window.stop();
  const last = window.setTimeout(() => {});
  for (let id = last < 100000 ? last : 0; id > 0; id -= 1) window.clearTimeout(id);
  return last < 100000;
})()"""
_QUIETEN_S = 2.0
"""Fixed: past it the tab counts as not settled, which costs the next episode a new context only."""
MAX_TEXT = 20_000_000
"""Longest text that evaluators and copies take from a page, in characters."""
_BY_INPUT = frozenset({"click", "right_click", "hover", "type", "search", "press_enter", "press_key", "drag"})
_INPUT_WAIT_S = 2.0
"""Fixed: nothing is lost past it, because the call that looks has its own ``settle_timeout_s``."""
_LAST_EVENT_S = 0.1
"""Fixed: the browser has confirmed the input by then, and its last event is on its way in the page."""
_GONE = (
    "Execution context was destroyed",
    "Cannot find context",
    "Inspected target navigated",
    "Promise was collected",
)
_INTERRUPTED = "is interrupted by another navigation"
_BLANK_TRIES = 5
"""Times that a page's own navigation may come between a tab and its blank page."""

_NOTHING_TOLD = PageReply(
    code="", detail="", invalid=-1, new_tab=False, posted=False, navigating=True, still=False, redirects=0, entry="",
    feedback=(), seen=None,
)  # fmt: skip
"""Stands for the reply of a document that went away before it gave one."""

_LOG = logging.getLogger(__name__)


class BrowserTab:
    """A page with what is known about it.

    ``last_title`` is what its last observation said; ``posted`` are the history entries that
    answered a sent form, which cannot be returned to; ``settled`` turns false, for good, when a page did not
    arrive in time, so that something may still be under way.
    """

    def __init__(self, page: Page, settings: BrowserSettings) -> None:
        self.page = page
        self.last_title = ""
        self.settled = True
        self._settings = settings
        self.posted: list[str] = []
        self._arrived = asyncio.Event()
        self._side_feedback: list[tuple[str, str]] = []
        self._wire = Wire(page)
        page.on("domcontentloaded", lambda _: self._arrived.set())
        page.on("download", lambda _: self._note("download"))
        page.on("crash", lambda _: self._arrived.set())
        page.on("dialog", self._accept)
        page.on("worker", _mute)

    def take_feedback(self) -> list[tuple[str, str]]:
        """Return (code, detail) of what happened beside the page script since the last call."""
        taken, self._side_feedback = self._side_feedback, []
        return taken

    async def goto(self, url: str, timeout_s: float) -> int:
        """Open an address and wait until its document is there; return the HTTP status (200 where there is none)."""
        timeout_ms = max(1.0, timeout_s * 1000)  # 0 would be no limit
        reply = await typed(self.page.goto(url, wait_until="domcontentloaded", timeout=timeout_ms), url)
        return 200 if reply is None else reply.status

    async def rest(self, load_s: float, quiet_s: float) -> None:
        """Wait until the page has loaded and then is quiet, and so for the page that it goes on to by itself.

        It is left as it is when it still loads after ``load_s``, or is not quiet ``quiet_s`` after that.
        """
        call = _REST.format(load_ms=load_s * 1000, quiet_ms=quiet_s * 1000)
        try:
            async with asyncio.timeout(load_s + quiet_s):
                while True:
                    self._arrived.clear()
                    if await self._run(call) == "quiet":
                        return
                    await self._arrived.wait()
        except TimeoutError:
            _LOG.debug("%s is read although it is not quiet", self.page.url)

    async def read(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page, as JSON gives it."""
        return await typed(self._wire.evaluate(expression), self.page.url)

    async def read_text(self, expression: str) -> str:
        """Return the text that a JavaScript expression yields in the page.

        Raises:
            EpisodeFailed: ``infra/page_too_large`` when it is longer than ``MAX_TEXT``, or no text.
        """
        found = await self.read(_BOUNDED.format(work=expression, limit=MAX_TEXT))
        if not isinstance(found, str):
            detail = f"{self.page.url}: expected a text of at most {MAX_TEXT} characters"
            raise EpisodeFailed(Failure(codes.PAGE_TOO_LARGE, detail))
        return found

    async def forget_page(self) -> None:
        """Forget what the document keeps for its tab (its session storage)."""
        await self.read("try { sessionStorage.clear(); } catch { /* a document without an origin has none */ }")

    async def quieten(self) -> None:
        """End the requests and timers of the tab's document and forget what it keeps, so that nothing of it goes on.

        For pages that mean no harm; a blank page in its place would cost a page load. After one that resists, the
        tab counts as not settled.
        """
        try:
            async with asyncio.timeout(_QUIETEN_S):
                quiet = await self.read(_QUIETEN)
        except (EpisodeFailed, TimeoutError) as error:
            _LOG.debug("%s does not become quiet: %s", self.page.url, error)
            quiet = False
        self.settled = self.settled and quiet is True

    async def step(self, action: dict[str, Any] | None, options: dict[str, Any]) -> PageReply:
        """Act (or only look, with None), wait for quiet or for the next document, and return what is visible.

        ``options`` are the page script's; ``aside`` among them is an expression, whose value in the page that is shown
        comes with the result, so that it costs no call of its own.
        """
        self._arrived.clear()
        by_input = self._settings.trusted_input and action is not None and action["kind"] in _BY_INPUT
        told = await (self._act(action, options) if by_input else self._call(_STEP, action, options))
        if not told.navigating or self._closed_itself():
            return told
        if action is not None and not self._arrived.is_set():
            await self._arrival()
        looked = await self._look(options)
        if told.posted and not looked.redirects:
            self.posted.append(looked.entry)
        feedback = (*told.feedback, *looked.feedback)
        return replace(looked, code=told.code, detail=told.detail, still=False, feedback=feedback)

    async def rest_mouse(self) -> None:
        """Take the mouse off whatever it is over; without frames a movement alone would wait for one for seconds."""
        corner = [self._settings.viewport_width - 1, self._settings.viewport_height - 1]
        await typed(self._wire.give(commands([{"move": corner}])), self.page.url)

    async def copy(self) -> str:
        """Return the page's HTML with the state of its controls written into it."""
        return await self.read_text(COPY)

    async def history(self) -> tuple[int, list[str]]:
        """Return the position in the tab's history and the addresses in it."""
        found = await self._wire.send("Page.getNavigationHistory")
        return found["currentIndex"], [entry["url"] for entry in found["entries"]]

    async def forget_history(self) -> None:
        """Make the current page the first of the tab's history."""
        await self._wire.send("Page.resetNavigationHistory")

    async def leave(self, origin: str) -> None:
        """Go to a blank page and forget all that pages of ``origin`` keep, this tab's name and storage included.

        No script of the page runs from the moment in which the forgetting begins: its last words would reach the
        next episode.
        """
        wire = self._wire
        await wire.send("Emulation.setScriptExecutionDisabled", {"value": True})
        await wire.send("DOMStorage.clear", {"storageId": {"securityOrigin": origin, "isLocalStorage": False}})
        await self._go_to_blank()
        await wire.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        await wire.send("Emulation.setScriptExecutionDisabled", {"value": False})
        await self.read("window.name = ''")

    async def _go_to_blank(self) -> None:
        """Go to a blank page; one that keeps going elsewhere by itself is stopped, and may interrupt a few times."""
        for left in reversed(range(_BLANK_TRIES)):
            await self._wire.send("Page.stopLoading")
            try:
                await self.goto("about:blank", self._settings.close_timeout_s)
                return
            except EpisodeFailed as error:
                if not left or _INTERRUPTED not in error.failure.detail:
                    raise

    async def _act(self, action: dict[str, Any] | None, options: dict[str, Any]) -> PageReply:
        """Act by real input; nothing is told when the document went away under it."""
        # In the order in which they are sent: tasks begin as they are made. The page takes both before any input.
        planning = asyncio.ensure_future(self._ask(_BEGIN, action, options))
        finishing = asyncio.ensure_future(self._call(_FINISH, None, options))
        giving: list[asyncio.Future[None]] = []
        try:
            planned = await planning
            if planned is None:  # what the call does in the next document is over before that is looked at
                await asyncio.wait({finishing}, timeout=self._settings.navigation_timeout_s)
                return _NOTHING_TOLD
            giving.append(asyncio.ensure_future(self._give(read_inputs(planned, self.page.url))))
            return await finishing
        finally:
            await end_tasks(planning, finishing, *giving)

    def _closed_itself(self) -> bool:
        """Whether the page has closed its tab, in a browser that lives on."""
        browser = self.page.context.browser
        return self.page.is_closed() and browser is not None and browser.is_connected()

    async def _give(self, inputs: list[dict[str, Any]]) -> None:
        """Give input, all of it at once and in order; a page that misses its last event is told that it is over."""
        try:
            try:
                async with asyncio.timeout(_INPUT_WAIT_S):
                    for item in inputs:
                        if "drag" in item:
                            await self._wire.drag(item["drag"], item["to"])
                    await self._wire.give(commands([item for item in inputs if "drag" not in item]))
                await asyncio.sleep(_LAST_EVENT_S)
            except TimeoutError as error:
                _LOG.debug("input to %s, which is busy with it: %s", self.page.url, error)
            await self._wire.give([("Runtime.evaluate", {"expression": _HANDED})])
        except PlaywrightError as error:
            # The page went away with the input; the waiting call goes with it.
            _LOG.debug("input to %s: %s", self.page.url, error)

    async def _call(self, form: str, action: dict[str, Any] | None, options: dict[str, Any]) -> PageReply:
        """Run the page script once and read its reply; nothing is told when the document went away under it."""
        raw = await self._ask(form, action, options)
        if raw is None:
            return _NOTHING_TOLD
        url = self.page.url
        return await asyncio.to_thread(read_result, raw, url) if len(raw) > LARGE else read_result(raw, url)

    async def _ask(self, form: str, action: dict[str, Any] | None, options: dict[str, Any]) -> str | None:
        """Have the page script do one part of a step; None when the document went away under it."""
        return await self._run(form.format(action=json.dumps(action), options=_as_javascript(options)))

    async def _run(self, call: str) -> str | None:
        """Run the page script once; None when the document went away under it."""
        work = _BOUNDED.format(work=call, limit=MAX_REPLY)
        try:
            raw = await self._wire.evaluate(work)
            if raw == "null":
                # Documents that Chromium itself makes (error pages, the first blank one) come without the script.
                await self._wire.evaluate(PAGE_SCRIPT)
                raw = await self._wire.evaluate(work)
        except PlaywrightError as error:
            if self._closed_itself() or any(sign in error.message for sign in _GONE):
                return None
            raise failure(error, self.page.url) from error
        return raw if isinstance(raw, str) else ""

    async def _look(self, options: dict[str, Any]) -> PageReply:
        """Look at the current document, again where it is replaced meanwhile; the caller's deadline ends this."""
        while True:
            self._arrived.clear()
            told = await self._call(_STEP, None, options)
            if not told.navigating:
                return told
            await self._arrival()

    async def _arrival(self) -> None:
        """Wait for the next document; one that takes too long is stopped, for Chromium answers nothing until then."""
        try:
            await asyncio.wait_for(self._arrived.wait(), self._settings.navigation_timeout_s)
        except TimeoutError:
            self._note("slow")
            await self._wire.send("Page.stopLoading")

    def _note(self, code: str, detail: str = "") -> None:
        self.settled = self.settled and code != "slow"
        if len(self._side_feedback) < MAX_FEEDBACK:
            self._side_feedback.append((code, detail))
        self._arrived.set()

    async def _accept(self, dialog: Dialog) -> None:
        """Accept what the page script cannot intercept (``beforeunload``)."""
        if len(self._side_feedback) < MAX_FEEDBACK:
            self._side_feedback.append(("dialog", dialog.message[:1000]))
        try:
            await dialog.accept()
        except PlaywrightError:
            # The page closed under its dialog; there is nobody left to answer.
            return


def _as_javascript(options: dict[str, Any]) -> str:
    """Return the options as the page script takes them: data, and what is asked aside as a function."""
    plain = json.dumps({name: value for name, value in options.items() if name != "aside"})
    return f"{{...{plain}, aside: () => ({options['aside']})}}"


async def _mute(worker: Worker) -> None:
    """Silence a worker that a page has started, as its documents are from the first."""
    try:
        await worker.evaluate(WORKER_SCRIPT)
    except PlaywrightError as error:
        _LOG.debug("worker %s ended before it was mute: %s", worker.url, error)
