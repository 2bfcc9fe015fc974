"""DevTools of one page: commands, input and expressions, past Playwright's own machinery in the page.

Owns ``Wire``. Invariant: what ``send`` raises is typed; ``evaluate`` and ``give`` raise Playwright's errors, because
only their caller knows whether a page that goes away is a fault.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from playwright.async_api import CDPSession, Page

from environments.browser.calls import typed
from environments.browser.input import Command, commands, drag_path, dragged, held_mouse, held_mouse_moved
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

_DRAG_BEGINS_S = 0.25
"""Fixed: a page says at once whether what is pressed and moved is dragged by the browser's own drag and drop."""
_DRAG_STEP_S = 0.02
"""Fixed: libraries look where the pointer is a few times a frame."""


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

    async def drag(self, start: list[float], end: list[float]) -> None:
        """Press the mouse at one point, move it to another and let go; a page's own drag and drop is gone through."""
        session = await self._opened()
        held: list[dict[str, Any]] = []
        caught = asyncio.Event()

        def begun(event: dict[str, Any]) -> None:
            held.append(event["data"])
            caught.set()

        session.on("Input.dragIntercepted", begun)
        first, second, *rest = drag_path(start, end)
        # Not waited for one by one: a movement is answered when the next event has come.
        given: list[asyncio.Future[Any]] = []

        def give(*wanted: Command) -> None:
            given.extend(asyncio.ensure_future(session.send(method, told)) for method, told in wanted)

        try:
            await session.send("Input.setInterceptDrags", {"enabled": True})
            give(*commands([{"move": start}]), held_mouse("mousePressed", start))
            give(*held_mouse_moved(first), *held_mouse_moved(second))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DRAG_BEGINS_S):
                    await caught.wait()
            entered = False
            for point in [*rest, end]:
                if held:
                    give(dragged("dragOver" if entered else "dragEnter", point, held[0]))
                    entered = True
                else:
                    give(*held_mouse_moved(point))
                await asyncio.sleep(_DRAG_STEP_S)
            if held:
                give(dragged("dragOver", end, held[0]), dragged("drop", end, held[0]))
            give(held_mouse("mouseReleased", end))
            await asyncio.gather(*given)
        finally:
            session.remove_listener("Input.dragIntercepted", begun)
            await session.send("Input.setInterceptDrags", {"enabled": False})

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
