"""Calls to a browser through Playwright: what goes wrong is said in Waymark's failures.

Owns the typing of Playwright's errors, and the race of work with the end of a tab's process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from playwright.async_api import Error as PlaywrightError

from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure
from records.supervision import end_tasks

_END_TOLD_S = 0.3
"""Fixed: past it a failure keeps the name it has, which costs the episode the same."""
_DEAD = ("crashed", "has been closed", "Browser closed", "Connection closed", "Target closed")

T = TypeVar("T")


async def typed(call: Coroutine[Any, Any, T], url: str) -> T:
    """Await one Playwright call; raise what goes wrong as ``EpisodeFailed``."""
    try:
        return await call
    except PlaywrightError as error:
        raise failure(error, url) from error


def first_line(error: PlaywrightError | TimeoutError) -> str:
    """Return what went wrong, without the log of the call or of the browser that Playwright adds to it."""
    return str(error).partition("\n")[0] or type(error).__name__


def failure(error: PlaywrightError, url: str) -> EpisodeFailed:
    """Say whose fault a Playwright error is: a dead browser, an unreachable site, a slow one, or something else."""
    text = first_line(error)
    if any(sign in text for sign in _DEAD):
        code = codes.BROWSER_CRASHED
    elif "net::ERR_" in text:
        code = codes.SITE_UNREACHABLE
    elif "Timeout" in text:
        code = codes.STEP_TIMEOUT
    else:
        code = codes.BROWSER_ERROR
    return EpisodeFailed(Failure(code, f"{url}: {text}"))


async def unless_crashed(crashed: asyncio.Event, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``work``; raise ``EpisodeFailed(infra/browser_crashed)`` as soon as ``crashed`` is set.

    Chromium leaves calls into a page whose process has died unanswered, and only their deadline would end them; a
    navigation that was under way fails a moment before the end is told, as if the site could not be reached.
    """
    working, crash = asyncio.ensure_future(work()), asyncio.ensure_future(crashed.wait())
    try:
        await asyncio.wait({working, crash}, return_when=asyncio.FIRST_COMPLETED)
        error = working.exception() if working.done() else None
        if error is not None:
            await asyncio.wait({crash}, timeout=_END_TOLD_S)
        if crash.done() and (error is not None or not working.done()):
            died = Failure(codes.BROWSER_CRASHED, "the process of a tab has died")
            raise EpisodeFailed(died) from error
        return working.result()
    finally:
        await end_tasks(working, crash)
