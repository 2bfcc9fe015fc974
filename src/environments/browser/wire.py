"""DevTools of one page: commands, input and expressions, past Playwright's own machinery in the page.

Owns ``Wire``. Invariant: what ``send`` raises is typed; ``evaluate`` and ``give`` raise Playwright's errors, because
only their caller knows whether a page that goes away is a fault.
"""

from __future__ import annotations

import asyncio
from typing import Any

from playwright.async_api import CDPSession, Page

from environments.browser.calls import typed
from environments.browser.input import Command
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure


class Wire:
    """A DevTools session with ``page``, opened when it is first needed."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._session: CDPSession | None = None

    async def send(self, method: str, parameters: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send one command and return its answer."""
        return await typed((await self._opened()).send(method, parameters), self._page.url)

    async def give(self, wanted: list[Command]) -> None:
        """Send commands in order without waiting for the answers in between."""
        session = await self._opened()
        await asyncio.gather(*(session.send(method, parameters) for method, parameters in wanted))

    async def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression; Playwright's own way costs 4 ms of CPU a new document.

        Raises:
            EpisodeFailed: ``infra/page_script_failed`` for what the expression throws.
        """
        reply = await (await self._opened()).send(
            "Runtime.evaluate",
            {"expression": expression, "returnByValue": True, "awaitPromise": True, "userGesture": True},
        )
        if "exceptionDetails" in reply:
            thrown = reply["exceptionDetails"]
            error = thrown.get("exception", {})
            detail = str(error.get("description") or error.get("value") or thrown.get("text"))[:300]
            raise EpisodeFailed(Failure(codes.PAGE_SCRIPT_FAILED, f"{self._page.url[:200]}: {detail}"))
        return reply["result"].get("value")

    async def _opened(self) -> CDPSession:
        if self._session is None:
            self._session = await typed(self._page.context.new_cdp_session(self._page), self._page.url)
        return self._session
