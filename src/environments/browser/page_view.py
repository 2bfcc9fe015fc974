"""A real page as the evaluators see it.

Owns ``BrowserPageView``. Invariants: addresses are canonical outside and stay on the episode's sites;
locators run in the page, never in Python.
"""

from __future__ import annotations

from environments.addresses import EpisodeAddresses
from environments.browser.tab import BrowserTab
from environments.browserless.tabs import raise_for_status
from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure

_READ = "(() => {{ try {{ const it = {locator}; return it == null ? '' : String(it); }} catch {{ return ''; }} }})()"
_CONTENT = (
    "(document.doctype ? new XMLSerializer().serializeToString(document.doctype) : '') + "
    "document.documentElement.outerHTML"
)


class BrowserPageView:
    """Implements ``judges.interface.PageView`` over a browser tab."""

    def __init__(self, tab: BrowserTab, addresses: EpisodeAddresses, deadline: Deadline) -> None:
        self._tab, self._addresses, self._deadline = tab, addresses, deadline

    async def url(self) -> str:
        """Return the canonical address."""
        return self._addresses.canonical(self._tab.page.url)

    async def open(self, url: str) -> None:
        """Navigate to a canonical address."""
        real = self._addresses.real(url)
        if not self._addresses.allows(real):
            detail = f"{url} is not on the task's sites"
            raise EpisodeFailed(Failure(codes.EVALUATION_URL_REFUSED, detail))
        await self._tab.forget_page()
        raise_for_status(url, await self._tab.goto(real, self._deadline.left()))

    async def content_text(self, locator: str) -> str:
        """Return the page's HTML for '', else what the locator yields there."""
        if not locator:
            return await self._tab.read_text(_CONTENT)
        try:
            return await self._tab.read_text(_READ.format(locator=locator.strip().rstrip(";")))
        except EpisodeFailed as error:
            if "SyntaxError" not in error.failure.detail:
                raise
            detail = f"locator {locator!r} is no JavaScript expression: {error.failure.detail}"
            raise EpisodeFailed(Failure(codes.EVALUATION_INVALID, detail)) from error
