"""A page of a WebArena site as the evaluators see it.

Owns ``WebArenaPageView``. Invariants: real addresses in a page's contents are canonical outside, like the
references in task files; a page that shows a lost log-in is a failure of the sites, never evidence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from environments.browser.page_view import BrowserPageView
from environments.browser.tab import BrowserTab
from environments.webarena.sites.episode_addresses import WebArenaAddresses
from records.deadline import Deadline


class WebArenaPageView:
    """Implements ``judges.interface.PageView``; ``check`` raises where a tab's page shows that a log-in is gone."""

    def __init__(
        self,
        tab: BrowserTab,
        addresses: WebArenaAddresses,
        deadline: Deadline,
        check: Callable[[BrowserTab], Awaitable[None]],
    ) -> None:
        self._tab, self._addresses, self._check = tab, addresses, check
        self._page = BrowserPageView(tab, addresses, deadline)

    async def url(self) -> str:
        """Return the canonical address."""
        return await self._page.url()

    async def open(self, url: str) -> None:
        """Navigate to a canonical address, where the episode must still be logged in."""
        await self._page.open(url)
        await self._check(self._tab)

    async def content_text(self, locator: str) -> str:
        """Return the page's HTML for '', else what the locator yields there, with placeholders for own addresses."""
        return self._addresses.canonical_text(await self._page.content_text(locator))
