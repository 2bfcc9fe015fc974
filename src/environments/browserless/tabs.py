"""Tabs with history, without a browser: which page is current and how one moves between pages.

Owns loading of pages into history entries. Invariants: like Chromium, a page returned to is fetched
again and what was typed into it is put back; a refused address leaves the current page alone; a
site that fails is ``EpisodeFailed``, an error page below 500 is a page like any other.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace

from environments.addresses import EpisodeAddresses
from environments.browserless.asgi_client import AsgiClient
from environments.browserless.effects import Effect, PageRequest, same_document
from environments.browserless.html_page import ControlState, HtmlPage
from environments.embedded.sessions import SESSION_LOST
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

_LONGEST = 10
"""Fixed: digits of a tab's number; there are few tabs."""


@dataclass(slots=True)
class Entry:
    """One place in a tab's history."""

    request: PageRequest
    states: list[ControlState] = field(default_factory=list)


@dataclass(slots=True)
class Tab:
    """One tab: its current page and its history."""

    page: HtmlPage
    entries: list[Entry]
    position: int = 0


class Tabs:
    """All tabs of one episode over one in-process application."""

    def __init__(self, client: AsgiClient, addresses: EpisodeAddresses, limit: int) -> None:
        self._client, self._addresses, self._limit = client, addresses, limit
        self._tabs: list[Tab] = []
        self.current = 0

    @property
    def tab(self) -> Tab:
        """The current tab."""
        return self._tabs[self.current]

    @property
    def page(self) -> HtmlPage:
        """The current tab's page."""
        return self.tab.page

    def alike(self) -> Tabs:
        """Return an empty set of tabs that shares the cookies and addresses of this one, without its limit."""
        return Tabs(self._client, self._addresses, sys.maxsize)

    def titles(self) -> tuple[str, ...]:
        """Return every tab's title, or its address where there is none."""
        return tuple(tab.page.title or self._addresses.canonical(tab.page.url) for tab in self._tabs)

    async def open_tab(self, request: PageRequest) -> Effect:
        """Open a page in a new tab and move there."""
        if len(self._tabs) >= self._limit:
            return Effect(code="too_many_tabs")
        loaded = await self._load(request)
        if isinstance(loaded, Effect):
            return loaded
        self._tabs.append(Tab(loaded[0], [Entry(loaded[1])]))
        self.current = len(self._tabs) - 1
        return Effect()

    async def follow(self, request: PageRequest) -> Effect:
        """Go to a page in the current tab, dropping later history."""
        if request.new_tab:
            return await self.open_tab(request)
        tab, before = self.tab, self.page.url
        if request.method == "GET" and same_document(request.url, tab.page.url):
            tab.page.url = request.url
            loaded: tuple[HtmlPage, PageRequest] | Effect = (tab.page, request)
        else:
            loaded = await self._load(request)
        if isinstance(loaded, Effect):
            if loaded.detail != request.url:  # a redirect that was refused has already ended what lay ahead
                del tab.entries[tab.position + 1 :]
            return loaded
        tab.entries[tab.position].states = tab.page.save()
        # A link to the address that is already shown replaces its entry, as in Chromium; a sent form never does.
        if request.url == before and not request.sent:
            tab.entries[tab.position] = Entry(loaded[1])
        else:
            tab.position += 1
            tab.entries[tab.position :] = [Entry(loaded[1])]
        tab.page = loaded[0]
        return Effect()

    async def travel(self, delta: int) -> Effect:
        """Go back (-1) or forward (1) in the current tab."""
        tab = self.tab
        position = tab.position + delta
        if not 0 <= position < len(tab.entries):
            return Effect(code="no_back" if delta < 0 else "no_forward")
        entry = tab.entries[position]
        if entry.request.method == "POST":
            return Effect(code="resubmit")
        tab.entries[tab.position].states = tab.page.save()
        if same_document(entry.request.url, tab.page.url):
            tab.page.url = entry.request.url
        else:
            loaded = await self._load(entry.request)
            if isinstance(loaded, Effect):
                return loaded
            tab.page = loaded[0]
            tab.page.restore(entry.states)
        tab.position = position
        return Effect()

    def switch(self, wanted: str) -> Effect:
        """Move to the tab with this number."""
        number = wanted.strip()
        if not (number.isascii() and number.isdigit() and len(number) < _LONGEST and int(number) < len(self._tabs)):
            return Effect(code="no_tab")
        self.current = int(number)
        return Effect()

    async def _load(self, request: PageRequest) -> tuple[HtmlPage, PageRequest] | Effect:
        """Fetch a page; also return the request that shows it again. An effect when an address is refused."""
        reply = await self._client.fetch(request, self._addresses.allows)
        if reply.status == 0:
            return Effect(code="refused", detail=reply.url)
        raise_for_status(reply.url, reply.status)
        redirected = reply.url != request.url
        again = replace(request, url=reply.url, new_tab=False)
        if redirected and request.method != "GET":
            again = PageRequest(reply.url)
        return HtmlPage(reply.text, reply.url, reply.status), again


def raise_for_status(url: str, status: int) -> None:
    """Raise ``EpisodeFailed`` when a status says that the site, not the agent, went wrong."""
    if status == SESSION_LOST:
        detail = f"{url}: the site no longer has this episode's session (was its server restarted?)"
        raise EpisodeFailed(Failure(codes.SITE_SESSION_LOST, detail))
    if status >= 500:
        raise EpisodeFailed(Failure(codes.SITE_ERROR, f"{url}: the site answered {status}"))
