"""A page of a WebArena site as the evaluators see it.

Owns ``WebArenaPageView``. Invariants: real addresses in a page's contents are canonical outside, like the
references in task files; a page that shows a lost log-in is a failure of the sites, never evidence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from environments.browser.page_view import BrowserPageView
from environments.browser.tab import BrowserTab
from environments.webarena.sites.episode_addresses import WebArenaAddresses
from records.deadline import Deadline


class WebArenaPageView(BrowserPageView):
    """A page of the episode at ``addresses``; ``check`` raises where a tab's page shows that a log-in is gone."""

    def __init__(
        self,
        tab: BrowserTab,
        addresses: WebArenaAddresses,
        deadline: Deadline,
        check: Callable[[BrowserTab], Awaitable[None]],
    ) -> None:
        super().__init__(tab, addresses, deadline)
        self._check, self._canonical_text = partial(check, tab), addresses.canonical_text

    async def open(self, url: str) -> None:
        """Navigate to a canonical address, where the episode must still be logged in."""
        await super().open(url)
        await self._check()

    async def content_text(self, locator: str) -> str:
        """Return the page's HTML for '', else what the locator yields there, with placeholders for own addresses."""
        return self._canonical_text(await super().content_text(locator))
