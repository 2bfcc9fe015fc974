"""A real page as the evaluators see it.

Owns ``BrowserPageView``. Invariants: addresses are canonical outside and stay on the episode's sites;
locators run in the page, never in Python; a page that was opened is read once it has loaded and is quiet, and what is
not there yet is looked for again for a while, because scripts may still draw it.
"""

from __future__ import annotations

import asyncio

from environments.addresses import EpisodeAddresses
from environments.browser.tab import BrowserTab
from environments.browserless.tabs import raise_for_status
from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, Failure

_LOAD_S = 10.0
"""Fixed: what holds up a page's load for longer is no part of what evaluators ask for."""
_QUIET_S = 3.0
"""Fixed: a page that is not quiet by then works for ever, and is read all the same."""
_PATIENCE_S = 3.0
"""Fixed: as long as WebArena's harness waits for every page; only what never comes costs it."""
_AGAIN_S = 0.1
"""Fixed: a pace within ``_PATIENCE_S``."""
_READ = "(() => {{ try {{ const it = {locator}; return it == null ? '' : String(it); }} catch {{ return ''; }} }})()"
_PREPARE = "(() => {{ try {{ const it = {script}; return 'done'; }} catch {{ return ''; }} }})()"
_CONTENT = (
    "(document.doctype ? new XMLSerializer().serializeToString(document.doctype) : '') + "
    "document.documentElement.outerHTML"
)


class BrowserPageView:
    """Implements ``judges.interface.PreparedPageView`` over a browser tab.

    ``patience_s`` is how long what is not on a page that was opened is looked for, 0 where the sites draw nothing
    after their pages have settled.
    """

    def __init__(
        self, tab: BrowserTab, addresses: EpisodeAddresses, deadline: Deadline, patience_s: float = _PATIENCE_S
    ) -> None:
        self._tab, self._addresses, self._deadline = tab, addresses, deadline
        self._patience_s, self._patience = patience_s, Deadline(0.0)

    async def url(self) -> str:
        """Return the canonical address."""
        return self._addresses.canonical(self._tab.page.url)

    async def open(self, url: str) -> None:
        """Navigate to a canonical address, and wait until the page has loaded and is quiet."""
        real = self._addresses.real(url)
        if not self._addresses.allows(real):
            detail = f"{url} is not on the task's sites"
            raise EpisodeFailed(Failure(codes.EVALUATION_URL_REFUSED, detail))
        await self._tab.forget_page()
        raise_for_status(url, await self._tab.goto(real, self._deadline.left()))
        await self._tab.rest(self._part(_LOAD_S), self._part(_QUIET_S))
        self._patience = Deadline(self._part(self._patience_s))

    async def content_text(self, locator: str) -> str:
        """Return the page's HTML for '', else what the locator yields there."""
        if not locator:
            return await self._tab.read_text(_CONTENT)
        return await self._patiently(_READ.format(locator=_expression(locator)), locator)

    async def prepare(self, script: str) -> None:
        """Run a script once, as soon as what it acts on is there."""
        await self._patiently(_PREPARE.format(script=_expression(script)), script)

    async def _patiently(self, work: str, source: str) -> str:
        """Return the text that ``work`` yields in the page; while that is "", run it again until patience is over."""
        found = await self._read(work, source)
        while not found and self._patience.left() > 0:
            await asyncio.sleep(_AGAIN_S)
            await self._tab.rest(0.0, self._patience.left())
            found = await self._read(work, source)
        return found

    async def _read(self, work: str, source: str) -> str:
        try:
            return await self._tab.read_text(work)
        except EpisodeFailed as error:
            if "SyntaxError" not in error.failure.detail:
                raise
            detail = f"locator {source!r} is no JavaScript expression: {error.failure.detail}"
            raise EpisodeFailed(Failure(codes.EVALUATION_INVALID, detail)) from error

    def _part(self, most_s: float) -> float:
        """Return how long is waited at most: half of what is left at the most, so that the rest can be judged."""
        return min(most_s, self._deadline.left() / 2)


def _expression(script: str) -> str:
    return script.strip().rstrip(";")
