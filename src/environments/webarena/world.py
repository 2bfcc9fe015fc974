"""WebArena's own sites as a browser slot's episodes need them.

Owns ``WebArenaWorld``. Invariants: an episode acts under the lease on its sites that it was granted, and
no longer than that is kept; it has a context and, per site, a session of its own; a site that is down, hangs,
answers 500 or more, or has forgotten the session is ``EpisodeFailed`` (infra), never an observation and
never a verdict. An agent that logs itself out did that itself, and is judged.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Request

from environments.browser.interaction import Interaction
from environments.browser.slot import BrowserSlot
from environments.browser.tab import BrowserTab
from environments.environment import Grant
from environments.webarena.leases.units import SiteLease
from environments.webarena.login.sessions import LoginSession
from environments.webarena.page_view import WebArenaPageView
from environments.webarena.sites.episode_addresses import WebArenaAddresses
from environments.webarena.sites.shared import WebArenaSites
from environments.webarena.tasks.files import geolocation, rules_of, viewport
from judges.interface import EndedEpisode, OpenVerdict
from records import failure_codes as codes
from records.environment import Action, Observation, Verdict
from records.episodes import Task
from records.failures import EpisodeFailed, Failure

_READING = ("GET", "HEAD", "OPTIONS")
_LOGIN_TRIES = 2


class WebArenaWorld:
    """A ``World`` on the sites that an episode was granted."""

    keeps_context = False

    def __init__(self, sites: WebArenaSites) -> None:
        self._sites = sites
        self._addresses = WebArenaAddresses({})
        self.lease: SiteLease | None = None
        self._logins: dict[str, LoginSession] = {}
        self._left: set[str] = set()
        self._ends = 0.0

    async def open(self, task: Task, pages: Interaction, grant: Grant | None) -> Observation:
        """Take the lease on the task's sites, log in, and open its start pages."""
        sites = self._sites
        if not isinstance(grant, SiteLease):
            raise EpisodeFailed(Failure(codes.LEASE_LOST, f"{task.task_id}: sent without a lease on its sites"))
        self.lease = lease = grant
        self._ends = asyncio.get_running_loop().time() + sites.settings.lease_hold_s
        self._addresses = sites.addresses(lease)
        for last_try in range(1, _LOGIN_TRIES + 1):
            for site in sites.logins_of(task):
                unit = lease.units[site]
                with pages.deadline.waiting_for(codes.LOGIN_FAILED, f"the log-in at {site}"):
                    self._logins[site] = await sites.logins.lend(unit, site, lease.epochs[unit])
            try:
                seen = await self._open(task, pages)
            except EpisodeFailed as error:
                if error.failure.code != codes.SESSION_EXPIRED or last_try == _LOGIN_TRIES:
                    raise
            else:
                self._require_lease()
                return seen
            # A lent session ended before its time: once, that costs a log-in and not the episode.
            await pages.slot.discard()
            self._give_back_logins(usable=False)
        raise AssertionError("the last try returns or raises")

    async def step(self, action: Action, pages: Interaction) -> Observation:
        """Let the agent act, and look whether the sites keep up with it."""
        self._require_lease()
        seen = await pages.act(action)
        await self._require_pages(pages.slot)
        self._require_lease()
        return seen

    async def judge(self, task: Task, answer: str | None, pages: Interaction) -> Verdict | OpenVerdict:
        """Ask the judge, who has pages of their own in the same context."""
        self._require_lease()
        if self.lease is None:
            raise RuntimeError("no episode is open: call reset first")
        sites, slot = self._sites, pages.slot

        def view(tab: BrowserTab) -> WebArenaPageView:
            return WebArenaPageView(tab, self._addresses, pages.deadline, self._require_login)

        async def fresh_page() -> WebArenaPageView:
            return view(await slot.new_judging_tab())

        verdict = await sites.judge.verdict(
            EndedEpisode(
                task,
                answer=None if answer is None else self._addresses.canonical_text(answer),
                page=view(slot.tab),
                fresh_page=fresh_page,
                rules=rules_of(task),
                functions=sites.functions(self.lease, pages.deadline),
                deadline=pages.deadline,
            )
        )
        self._require_lease()
        return verdict

    async def close(self, *, judged: bool = False) -> None:
        """Give back the sessions, those of a judged episode for others to use; the sites go back with the answer."""
        self._give_back_logins(usable=judged)
        self.lease = None

    async def _open(self, task: Task, pages: Interaction) -> Observation:
        """Open the start pages in a context that has the log-ins."""
        slot = pages.slot
        self._left = set()
        slot.addresses = self._addresses
        await slot.open_context(self._addresses.bypass, **self._context_options(task))
        slot.context.on("request", self._on_request)
        await pages.open_start_pages(task)
        seen = await pages.look(first=True)
        await self._require_pages(slot)
        return seen

    def _context_options(self, task: Task) -> dict[str, Any]:
        """Return what the task asks of its context: cookies of its log-ins, place and viewport."""
        states = [login.state for login in self._logins.values()]
        options: dict[str, Any] = {
            "storage_state": {
                "cookies": [cookie for state in states for cookie in state.get("cookies", ())],
                "origins": [origin for state in states for origin in state.get("origins", ())],
            }
        }
        place, size = geolocation(task), viewport(task)
        if place is not None:
            options |= {"geolocation": place.model_dump(), "permissions": ["geolocation"]}
        if size is not None and size.width is not None and size.height is not None:
            options["viewport"] = {"width": size.width, "height": size.height}
        return options

    def _on_request(self, request: Request) -> None:
        """Note when the agent logs itself out, and when it sends a form."""
        site = self._addresses.site_of(request.url)
        if site is None:
            return
        form = self._sites.forms.get(site)
        if form is not None and form.logout.search(urlsplit(request.url).path):
            self._left.add(site)
        elif request.method not in _READING and request.is_navigation_request() and self.lease is not None:
            self.lease.wrote.add(site)

    async def _require_pages(self, slot: BrowserSlot) -> None:
        """Raise ``EpisodeFailed`` where a page did not come, or shows that the log-in is gone."""
        late = next((tab for tab in slot.tabs if not tab.settled), None)
        if late is not None:
            where, limit = self._addresses.canonical(late.page.url), slot.settings.navigation_timeout_s
            detail = f"{where}: the next page did not come within {limit:g} s"
            raise EpisodeFailed(Failure(codes.SITE_TIMEOUT, detail))
        await self._require_login(slot.tab)

    async def _require_login(self, tab: BrowserTab) -> None:
        """Raise ``infra/session_expired`` where the page shows that the site no longer knows the episode's session."""
        site = self._addresses.site_of(tab.page.url)
        if site is None or site not in self._logins or site in self._left:
            return
        mark = self._sites.forms[site].logged_out
        if await tab.read(f"document.querySelector({json.dumps(mark)}) !== null"):
            detail = f"{self._addresses.canonical(tab.page.url)} shows {mark}: the site has ended the session"
            raise EpisodeFailed(Failure(codes.SESSION_EXPIRED, detail))

    def _require_lease(self) -> None:
        """Raise ``infra/lease_lost`` where the driver soon gives the sites to others."""
        if self.lease is not None and asyncio.get_running_loop().time() >= self._ends:
            hold_s = self._sites.settings.lease_hold_s
            detail = f"the episode took longer than environments.webarena.lease_hold_s ({hold_s:g} s)"
            raise EpisodeFailed(Failure(codes.LEASE_LOST, detail))

    def _give_back_logins(self, *, usable: bool) -> None:
        logins, self._logins = self._logins, {}
        for site, login in logins.items():
            self._sites.logins.give_back(login, usable=usable and site not in self._left)
