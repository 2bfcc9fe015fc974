"""A page of a WebArena site as the evaluators see it.

Owns ``WebArenaPageView``. Invariants: real addresses in a page's contents are canonical outside, like the
references in task files; a page that shows a lost log-in is a failure of the sites, never evidence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from environments.browser.page_view import BrowserPageView
from environments.browser.settings import BrowserSettings
from environments.browser.tab import BrowserTab
from environments.webarena.sites.hosts import WebArenaHosts


class WebArenaPageView(BrowserPageView):
    """``judges.interface.PageView`` over a tab; ``check`` raises where the tab's page shows that a log-in is gone."""

    def __init__(
        self,
        tab: BrowserTab,
        hosts: WebArenaHosts,
        settings: BrowserSettings,
        check: Callable[[BrowserTab], Awaitable[None]],
    ) -> None:
        super().__init__(tab, hosts, settings)
        self._shown_tab, self._names, self._check = tab, hosts, check

    async def open(self, url: str) -> None:
        """Navigate to a canonical address, where the episode must still be logged in."""
        await super().open(url)
        await self._check(self._shown_tab)

    async def content_text(self, locator: str) -> str:
        """Return the page's HTML for '', else what the locator yields there, with placeholders for own addresses."""
        return self._names.canonical_text(await super().content_text(locator))
