"""One Chromium for one worker, and the contexts its episodes run in.

Owns the Chromium process and how contexts are closed off. Invariants: a context reaches its own sites
only (everything else goes to a proxy that refuses connections, see ``addresses.embedded_bypass``), runs no
service workers and takes no downloads; Chromium ends with this process (its control pipe breaks), and none is started
once it is closed, whoever still asks.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from playwright._impl import _driver, transport
from playwright.async_api import Browser, BrowserContext, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

from environments.browser import chromium
from environments.browser.calls import first_line
from environments.browser.page_painter import PagePainter
from environments.browser.page_scripts import FRAMES_SCRIPT, PAGE_SCRIPT, WEBRL_SCRIPT
from environments.browser.page_watch import PageWatch
from environments.browser.sandbox import sandboxed
from environments.browser.settings import BrowserSettings
from records import failure_codes as codes
from records.child_environment import inherited
from records.failures import EpisodeFailed, Failure


class BrowserProcess:
    """Starts Chromium on first use, and again when it has died."""

    def __init__(self, settings: BrowserSettings | None = None, resolver_rules: str = chromium.LOOPBACK_ONLY) -> None:
        """Take the settings and the names that Chromium resolves (its ``--host-resolver-rules``)."""
        self.settings = settings or BrowserSettings()
        self._resolver_rules = resolver_rules
        self.browser_id = secrets.token_hex(6)
        self._lock = asyncio.Lock()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._closed = False
        self._watch: PageWatch | None = None
        self._painter = PagePainter(self.settings)
        # Bound but never listening: whatever is sent here is refused at once, and nobody else can take the port.
        self._black_hole = socket.socket()
        self._black_hole.bind(("127.0.0.1", 0))

    @property
    def pids(self) -> list[int]:
        """Process ids of this Chromium (Linux)."""
        return chromium.processes(self.browser_id)

    def why_page_ended(self) -> Failure | None:
        """Return why a page was ended that took too much of what all share, each time once; None when none was."""
        return None if self._watch is None else self._watch.take_ended()

    async def open_context(self, bypass: str, **options: Any) -> BrowserContext:
        """Open a context whose pages reach only the origins in ``bypass`` (Chromium's proxy bypass list).

        ``options`` are Playwright's for contexts (``storage_state``, ``geolocation``, …).

        Raises:
            EpisodeFailed: ``infra/browser_launch_failed`` or ``infra/browser_crashed``.
        """
        browser = await self._running()
        settings = self.settings
        try:
            async with asyncio.timeout(settings.launch_timeout_s):
                size = {"width": settings.viewport_width, "height": settings.viewport_height}
                context = await browser.new_context(
                    **{"viewport": size, **options},
                    proxy={"server": f"http://127.0.0.1:{self._black_hole.getsockname()[1]}", "bypass": bypass},
                    service_workers="block",
                    accept_downloads=False,
                    locale="en-US",
                    timezone_id="UTC",
                )
                await context.add_init_script(script="\n".join(self._init_scripts()))
        except (PlaywrightError, TimeoutError) as error:
            raise EpisodeFailed(Failure(codes.BROWSER_CRASHED, f"no context: {first_line(error)}")) from error
        return context

    async def draw(self, html: str) -> bytes:
        """Return a PNG of a page's copy, where pages themselves are not drawn.

        Raises:
            EpisodeFailed: ``infra/browser_crashed``.
        """
        await self._running()
        assert self._playwright is not None
        try:
            return await self._painter.draw(self._playwright, html)
        except PlaywrightError as error:
            raise EpisodeFailed(Failure(codes.BROWSER_CRASHED, f"no screenshot: {first_line(error)}")) from error

    async def close(self) -> None:
        """End Chromium for good; safe to call twice."""
        self._closed = True
        async with self._lock:
            await self._stop()
        self._black_hole.close()

    def _init_scripts(self) -> list[str]:
        """Return what every document runs before its own scripts, in this order (hence installed as one)."""
        scripts = [] if self.settings.paint else [FRAMES_SCRIPT]
        scripts.append(PAGE_SCRIPT)
        if self.settings.observation_format == "webrl":
            scripts.append(WEBRL_SCRIPT)
        return scripts

    async def _running(self) -> Browser:
        async with self._lock:
            if self._closed:
                raise EpisodeFailed(Failure(codes.BROWSER_CRASHED, "the browser was closed"))
            if self._browser is None or not self._browser.is_connected():
                await self._stop()
                await self._start()
            assert self._browser is not None
            return self._browser

    async def _start(self) -> None:
        try:
            executable = chromium.find(self.settings.executable)
            boxed = await sandboxed(self.settings, executable)
            async with asyncio.timeout(self.settings.launch_timeout_s):
                self._playwright = await async_playwright().start()
                self._browser = await self._playwright.chromium.launch(
                    executable_path=executable,
                    chromium_sandbox=boxed,
                    args=chromium.launch_flags(
                        self.browser_id,
                        self.settings.paint,
                        self._resolver_rules,
                        script_memory_mb=self.settings.page_memory_mb,
                    ),
                    env={**inherited()},
                    timeout=self.settings.launch_timeout_s * 1000,
                )
                wire = await self._browser.new_browser_cdp_session()
            self._watch = PageWatch(wire, self.settings.page_memory_mb)
            self._watch.start()
        except (PlaywrightError, TimeoutError, chromium.BrowserMissing) as error:
            detail = f"Chromium did not start: {error or f'no answer in {self.settings.launch_timeout_s} s'}"
            raise EpisodeFailed(Failure(codes.BROWSER_LAUNCH_FAILED, detail)) from error

    async def _stop(self) -> None:
        browser, playwright, watch = self._browser, self._playwright, self._watch
        self._browser = self._playwright = self._watch = None
        endings: list[Callable[[], Coroutine[Any, Any, None]]] = [self._painter.close]
        if watch is not None:
            endings.append(watch.stop)
        if browser is not None:
            endings.append(browser.close)
        if playwright is not None:
            endings.append(playwright.stop)
        for ending in endings:
            try:
                async with asyncio.timeout(self.settings.close_timeout_s):
                    await ending()
            except (PlaywrightError, TimeoutError):
                # A dead or hung browser cannot say goodbye; it is gone or goes with its control pipe.
                continue


def _driver_environment() -> dict[str, str]:
    """Return what Playwright's driver inherits, and what Playwright itself adds."""
    allowed, made = inherited(), _driver.get_driver_env()
    return {name: value for name, value in made.items() if name in allowed or name not in os.environ}


vars(transport)["get_driver_env"] = _driver_environment  # Playwright passes on everything and offers no choice
