"""One tab of a real browser: sends the page script its work and waits for pages it opens.

Owns the calls into the page and the typing of what goes wrong there. Invariants: every wait is
bounded by the settings; a step costs one call where no page load happens and two where one does;
Playwright's errors never leave this module untyped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from playwright.async_api import CDPSession, Dialog, Page
from playwright.async_api import Error as PlaywrightError

from replay.records import EpisodeFailed, Failure, FailureKind
from rollout_workers.browser_session import PAGE_SCRIPT
from rollout_workers.portrait import COPY
from rollout_workers.settings import BrowserSettings

_STEP = "window.__waymark ? window.__waymark.step({action}, {options}) : 'null'"
_CENTRE = "window.__waymark.centre({n})"
_GONE = (
    "Execution context was destroyed",
    "Cannot find context",
    "Inspected target navigated",
    "Promise was collected",
)
_DEAD = ("crashed", "has been closed", "Browser closed", "Connection closed", "Target closed")

T = TypeVar("T")


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
        self._side_notices: list[tuple[str, str]] = []
        self._wire: CDPSession | None = None
        page.on("domcontentloaded", lambda _: self._arrived.set())
        page.on("download", lambda _: self._note("download"))
        page.on("crash", lambda _: self._arrived.set())
        page.on("dialog", self._accept)

    def take_notices(self) -> list[tuple[str, str]]:
        """Return (code, detail) of what happened beside the page script since the last call."""
        taken, self._side_notices = self._side_notices, []
        return taken

    async def goto(self, url: str, timeout_s: float) -> int:
        """Open an address and wait until its document is there; return the HTTP status (200 where there is none)."""
        reply = await typed(self.page.goto(url, wait_until="domcontentloaded", timeout=timeout_s * 1000), url)
        return 200 if reply is None else reply.status

    async def read(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page, as JSON gives it."""
        return await typed(self._evaluate(expression), self.page.url)

    async def forget_page(self) -> None:
        """Forget what the document keeps for its tab (its session storage)."""
        await self.read("try { sessionStorage.clear(); } catch { /* a document without an origin has none */ }")

    async def leave(self) -> None:
        """Take the tab off its document, so that nothing of it goes on."""
        await self.forget_page()
        self._arrived.clear()
        await self.read("location.replace('about:blank')")
        await self._arrival()

    async def step(self, action: dict[str, Any] | None, options: dict[str, Any]) -> dict[str, Any]:
        """Act (or only look, with None), wait for quiet or for the next document, and return what is visible."""
        self._arrived.clear()
        result = await self._call(action, options)
        if result is not None and not result["navigating"]:
            return result
        told: dict[str, Any] = (
            {"code": "", "notices": [], "invalid": -1, "new_tab": False, "posted": False} if result is None else result
        )
        if action is not None and not self._arrived.is_set():
            await self._arrival()
        seen = await self._look(options)
        if told["posted"] and not seen["redirects"]:
            self.posted.append(seen["entry"])
        seen["code"] = told["code"]
        seen["notices"] = [*told["notices"], *seen["notices"]]
        return seen

    async def hover(self, n: int) -> None:
        """Move the real mouse over the element with reference ``n``."""
        at = await self.read(_CENTRE.format(n=n))
        await typed(self.page.mouse.move(at[0], at[1]), self.page.url)

    async def copy(self) -> str:
        """Return the page's HTML with the state of its controls written into it."""
        return str(await self.read(COPY))

    async def history(self) -> tuple[int, list[str]]:
        """Return the position in the tab's history and the addresses in it."""
        found = await typed((await self._devtools()).send("Page.getNavigationHistory"), self.page.url)
        return found["currentIndex"], [entry["url"] for entry in found["entries"]]

    async def forget_history(self) -> None:
        """Make the current page the first of the tab's history."""
        await typed((await self._devtools()).send("Page.resetNavigationHistory"), self.page.url)

    async def clear_storage(self, origins: Sequence[str]) -> None:
        """Forget cookies, databases and storage of ``origins``, this tab's session storage included."""
        wire, url = await self._devtools(), self.page.url
        for origin in origins:
            own = {"securityOrigin": origin, "isLocalStorage": False}
            await typed(wire.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"}), url)
            await typed(wire.send("DOMStorage.clear", {"storageId": own}), url)

    async def _devtools(self) -> CDPSession:
        if self._wire is None:
            self._wire = await typed(self.page.context.new_cdp_session(self.page), self.page.url)
        return self._wire

    async def _call(self, action: dict[str, Any] | None, options: dict[str, Any]) -> dict[str, Any] | None:
        """Run the page script once; None when the document went away under it."""
        work = _STEP.format(action=json.dumps(action), options=json.dumps(options))
        try:
            raw = await self._evaluate(work)
            if raw == "null":
                # Documents that Chromium itself makes (error pages, the first blank one) come without the script.
                await self._evaluate(PAGE_SCRIPT)
                raw = await self._evaluate(work)
        except PlaywrightError as error:
            if any(sign in error.message for sign in _GONE):
                return None
            raise failure(error, self.page.url) from error
        result: dict[str, Any] = json.loads(raw)
        return result

    async def _evaluate(self, expression: str) -> Any:
        """Evaluate in the page, past Playwright's own in-page machinery: it costs 4 ms of CPU a new document."""
        reply = await (await self._devtools()).send(
            "Runtime.evaluate",
            {"expression": expression, "returnByValue": True, "awaitPromise": True, "userGesture": True},
        )
        if "exceptionDetails" in reply:
            thrown = reply["exceptionDetails"]
            detail = thrown.get("exception", {}).get("description", thrown.get("text", ""))
            raise EpisodeFailed(Failure(FailureKind.INFRA, "page_script_failed", f"{self.page.url}: {detail[:300]}"))
        return reply["result"].get("value")

    async def _look(self, options: dict[str, Any]) -> dict[str, Any]:
        """Look at the current document, again where it is replaced meanwhile; the caller's deadline ends this."""
        while True:
            self._arrived.clear()
            seen = await self._call(None, options)
            if seen is not None and not seen["navigating"]:
                return seen
            await self._arrival()

    async def _arrival(self) -> None:
        """Wait for the next document; one that takes too long is stopped, for Chromium answers nothing until then."""
        try:
            await asyncio.wait_for(self._arrived.wait(), self._settings.navigation_timeout_s)
        except TimeoutError:
            self._note("slow")
            await typed((await self._devtools()).send("Page.stopLoading"), self.page.url)

    def _note(self, code: str, detail: str = "") -> None:
        self.settled = self.settled and code != "slow"
        self._side_notices.append((code, detail))
        self._arrived.set()

    async def _accept(self, dialog: Dialog) -> None:
        """Accept what the page script cannot intercept (``beforeunload``)."""
        self._side_notices.append(("dialog", dialog.message))
        try:
            await dialog.accept()
        except PlaywrightError:
            # The page closed under its dialog; there is nobody left to answer.
            return


async def typed(call: Coroutine[Any, Any, T], url: str) -> T:
    """Await one Playwright call; raise what goes wrong as ``EpisodeFailed``."""
    try:
        return await call
    except PlaywrightError as error:
        raise failure(error, url) from error


def failure(error: PlaywrightError, url: str) -> EpisodeFailed:
    """Say whose fault a Playwright error is: a dead browser, an unreachable site, a slow one, or something else."""
    text = error.message.splitlines()[0] if error.message else type(error).__name__
    if any(sign in text for sign in _DEAD):
        code = "browser_crashed"
    elif "net::ERR_" in text:
        code = "site_unreachable"
    elif "Timeout" in text:
        code = "step_timeout"
    else:
        code = "browser_error"
    return EpisodeFailed(Failure(FailureKind.INFRA, code, f"{url}: {text}"))


async def deadline(seconds: float, what: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``work`` for at most ``seconds``; past it raise ``EpisodeFailed(infra/step_timeout)``."""
    try:
        async with asyncio.timeout(seconds):
            return await work()
    except TimeoutError as error:
        detail = f"{what}: not done within {seconds} s"
        raise EpisodeFailed(Failure(FailureKind.INFRA, "step_timeout", detail)) from error
