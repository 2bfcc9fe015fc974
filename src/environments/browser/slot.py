"""A browser context and its tabs, in which one episode after another is played.

Owns ``BrowserSlot``. Invariants: the agent's tabs are those that it may have, further ones are closed; an episode takes
over the context (and so the warm renderer process) of the one before it only when that one ended with every page
settled, so that no late request can reach its session.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from playwright.async_api import BrowserContext, Page
from playwright.async_api import Error as PlaywrightError

from environments.addresses import EpisodeAddresses
from environments.browser.calls import typed, unless_crashed
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.browser.tab import BrowserTab
from records.failures import EpisodeFailed

MOST_REFUSED = 20
"""Tabs beyond the limit that are closed one by one; an episode that opens more of them in a step has failed."""

_LOG = logging.getLogger(__name__)


class BrowserSlot:
    """The context, tabs and addresses of the episode in progress.

    ``watching`` is whether tabs that pages open are the agent's; ``refused`` counts those of the present step that were
    not given to it, ``storm`` says that they were too many; ``inherits`` is whether the episode may take over what the
    last one left.
    """

    def __init__(self, browser: BrowserProcess, settings: BrowserSettings) -> None:
        self.browser, self.settings = browser, settings
        self.addresses = EpisodeAddresses({})
        self.tabs: list[BrowserTab] = []
        self.current = 0
        self.watching = False
        self.refused = 0
        self.storm = False
        self.inherits = False
        self.opened = asyncio.Event()
        self.crashed = asyncio.Event()
        self._context: BrowserContext | None = None
        self.judging: BrowserTab | None = None
        self._left_settled = False
        self._episodes = 0
        self._closings: set[asyncio.Future[None]] = set()

    @property
    def tab(self) -> BrowserTab:
        """The agent's current tab."""
        return self.tabs[self.current]

    @property
    def context(self) -> BrowserContext:
        """The open context."""
        if self._context is None:
            raise RuntimeError("no episode is open: call reset first")
        return self._context

    def begin_episode(self) -> None:
        """Note that an episode begins, and whether it may take over the context that is there."""
        short = self._episodes < self.settings.episodes_per_context
        self.inherits = self._left_settled and short and not self.crashed.is_set()
        self._episodes += 1
        self.watching = False
        if self.crashed.is_set():
            self.browser.why_page_ended()  # an end between two episodes is nobody's failure
        self.crashed.clear()

    def begin_work(self) -> None:
        """Note that pages may be under way from now on."""
        self._left_settled = False

    def end_work(self) -> None:
        """Note that a piece of work has ended well, and whether it has left every page settled."""
        self._left_settled = self.refused == 0 and all(tab.settled for tab in self._all_tabs)

    async def take_over(self) -> bool:
        """Leave the last episode's page and return True; False where its context must go with it."""
        # What a tab keeps for an origin can be forgotten only while it shows that origin, hence one site only; and
        # where pages opened others, more of them may be under way.
        alone = len(self.tabs) == 1 and self._context and len(self._context.pages) == len(self._all_tabs)
        if not (self.inherits and alone and len(self.addresses.origins) == 1):
            return False
        tab, origin = self.tab, self.addresses.origins[0]
        # A page that cannot be left, or ends while it is left, is not the next episode's failure.
        crashed, self.crashed = self.crashed, asyncio.Event()
        try:
            async with asyncio.timeout(self.settings.close_timeout_s):
                await unless_crashed(self.crashed, lambda: tab.leave(origin))
        except (EpisodeFailed, TimeoutError) as error:
            _LOG.debug("the last page is not left, its context goes: %s", error)
            self.browser.why_page_ended()
            return False
        finally:
            self.crashed = crashed
        return True

    async def open_context(self, bypass: str, **options: Any) -> None:
        """Have a new context with one tab; see ``BrowserProcess.open_context``. The last one must be discarded."""
        self._episodes = 1
        self._context = await self.browser.open_context(bypass, **options)
        self._context.on("page", self._on_page)
        await self.open_tab("reset")

    async def open_tab(self, what: str) -> BrowserTab:
        """Give the agent one more tab."""
        return self._adopt(await typed(self.context.new_page(), what))

    async def judging_tab(self) -> BrowserTab:
        """Return the context's tab for evaluators; it stays for the next episode, for a new one costs 100 ms."""
        if self.judging is None:
            self.judging = await self.new_judging_tab()
        return self.judging

    async def new_judging_tab(self) -> BrowserTab:
        """Return a new tab, which the agent does not see."""
        tab = BrowserTab(await typed(self.context.new_page(), "evaluation"), self.settings)
        tab.page.on("crash", self._on_crash)
        return tab

    async def quieten_judging_tab(self) -> None:
        """Let nothing go on in the tab for evaluators."""
        if self.judging is not None:
            await self.judging.quieten()

    async def discard(self) -> None:
        """Close the context; what is dead already need not say goodbye."""
        context, self._context, self.tabs, self.current = self._context, None, [], 0
        self.judging, self.storm, self.refused = None, False, 0
        if context is None:
            return
        try:
            async with asyncio.timeout(self.settings.close_timeout_s):
                await context.close()
        except (PlaywrightError, TimeoutError) as error:
            _LOG.debug("a context did not close: %s", error)

    @property
    def _all_tabs(self) -> list[BrowserTab]:
        return [*self.tabs, *([self.judging] if self.judging else [])]

    def _on_page(self, page: Page) -> None:
        if not self.watching:
            return
        if len(self.tabs) < self.settings.max_tabs:
            self._adopt(page)
        elif self.refused < MOST_REFUSED:
            self.refused += 1
            closing = asyncio.ensure_future(_close_quietly(page))
            self._closings.add(closing)
            closing.add_done_callback(self._closings.discard)
        else:
            self.storm = True
        self.opened.set()

    def _adopt(self, page: Page) -> BrowserTab:
        tab = BrowserTab(page, self.settings)
        self.tabs.append(tab)
        page.on("crash", self._on_crash)
        page.on("close", lambda _: self._forget(tab))
        return tab

    def _on_crash(self, page: Page) -> None:
        if page.context is self._context:
            self.crashed.set()
        else:
            # It ends while its context closes, and the next episode has begun: nobody's failure.
            self.browser.why_page_ended()

    def _forget(self, tab: BrowserTab) -> None:
        if tab in self.tabs and len(self.tabs) > 1:
            index = self.tabs.index(tab)
            self.tabs.remove(tab)
            self.current = max(0, self.current - (index <= self.current))


async def _close_quietly(page: Page) -> None:
    """Close a page that nobody asked for; where it is gone or does not answer, its context's end takes it along."""
    try:
        await page.close()
    except PlaywrightError as error:
        _LOG.debug("unwanted page: %s", error)
