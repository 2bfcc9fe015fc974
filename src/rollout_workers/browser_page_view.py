"""A real page as the evaluators see it.

Owns ``BrowserPageView``. Invariants: addresses are canonical outside and stay on the episode's hosts;
locators run in the page, never in Python.
"""

from __future__ import annotations

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from replay.records import EpisodeFailed, Failure, FailureKind
from rollout_workers.browser_tab import failure, typed
from rollout_workers.browserless_tabs import raise_for_status
from rollout_workers.hosts import EpisodeHosts
from rollout_workers.settings import BrowserSettings

_READ = (
    "() => {{ try {{ const found = {locator}; return found == null ? '' : String(found); }} catch {{ return ''; }} }}"
)


class BrowserPageView:
    """Implements ``judges.interface.PageView`` over a Playwright page."""

    def __init__(self, page: Page, hosts: EpisodeHosts, settings: BrowserSettings) -> None:
        self._page, self._hosts, self._settings = page, hosts, settings

    async def url(self) -> str:
        """Return the canonical address."""
        return self._hosts.canonical(self._page.url)

    async def open(self, url: str) -> None:
        """Navigate to a canonical address."""
        real = self._hosts.real(url)
        if not self._hosts.allows(real):
            detail = f"{url} is not on the task's sites"
            raise EpisodeFailed(Failure(FailureKind.TASK, "evaluation_url_refused", detail))
        timeout_ms = self._settings.evaluate_timeout_s * 1000
        reply = await typed(self._page.goto(real, wait_until="domcontentloaded", timeout=timeout_ms), url)
        if reply is not None:
            raise_for_status(url, reply.status)

    async def content_text(self, locator: str) -> str:
        """Return the page's HTML for '', else what the locator yields there."""
        if not locator:
            return await typed(self._page.content(), self._page.url)
        try:
            return str(await self._page.evaluate(_READ.format(locator=locator.strip().rstrip(";"))))
        except PlaywrightError as error:
            if "SyntaxError" in error.message:
                detail = f"locator {locator!r} is no JavaScript expression: {error.message.splitlines()[0]}"
                raise EpisodeFailed(Failure(FailureKind.TASK, "evaluation_invalid", detail)) from error
            raise failure(error, self._page.url) from error
