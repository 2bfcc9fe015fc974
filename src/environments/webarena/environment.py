"""Episodes in a real browser on WebArena's own sites.

Owns ``WebArenaEnvironment``. Invariants: an episode holds a lease on its sites from its reset to its end and
gives it back however it ends; it has a context and, per site, a session of its own; a site that is down, hangs,
answers 500 or more, or has forgotten the session is ``EpisodeFailed`` (infra), never an observation and
never a verdict. An agent that logs itself out did that itself, and is judged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

from playwright.async_api import Request

from environments.browser.environment import BrowserEnvironment
from environments.browser.session import BrowserSession
from environments.browser.settings import BrowserSettings
from environments.browser.tab import BrowserTab, typed
from environments.embedded.sessions import SiteSessions
from environments.webarena.leases.modes import site_modes
from environments.webarena.leases.units import SiteLease
from environments.webarena.login.pool import LoginSession
from environments.webarena.page_view import WebArenaPageView
from environments.webarena.sites.hosts import WebArenaHosts
from environments.webarena.sites.shared import WebArenaSites
from environments.webarena.tasks.files import geolocation, rules_of, viewport
from judges.evaluators import evaluate
from records import failure_codes as codes
from records.environment import Action, Observation, Verdict
from records.episodes import Task
from records.failures import EpisodeFailed, Failure

T = TypeVar("T")

_READING = ("GET", "HEAD", "OPTIONS")
_LOGIN_TRIES = 2


class WebArenaEnvironment(BrowserEnvironment):
    """An ``Environment`` in contexts of ``session`` on the sites that ``sites`` leases."""

    def __init__(self, session: BrowserSession, sites: WebArenaSites, settings: BrowserSettings | None = None) -> None:
        super().__init__(session, SiteSessions(port=0), settings)
        self._webarena = sites
        self._names = WebArenaHosts({})
        self._lease: SiteLease | None = None
        self._logins: dict[str, LoginSession] = {}
        self._left: set[str] = set()
        self._wrote: set[str] = set()

    async def reset(self, task: Task, *, seed: int = 0, episode_id: str = "") -> Observation:
        """Wait for the task's sites, log in, and open its start pages (``|AND|`` separates several)."""
        await self._end_episode(sessions_usable=False)
        return await self._held(partial(self._begin, task))

    async def step(self, action: Action) -> Observation:
        """Apply one action; see ``Environment.step``."""
        return await self._held(partial(super().step, action))

    async def evaluate(self, answer: str | None) -> Verdict:
        """Judge the episode by its task's evaluators, on a fresh page of the same context, and end it."""
        verdict = await self._held(partial(super().evaluate, answer))
        await self._end_episode(sessions_usable=True)
        return verdict

    async def close(self) -> None:
        """Close the context and give back what the episode held; safe to call twice."""
        await self._end_episode(sessions_usable=False)

    # -- one episode ---------------------------------------------------------------------------

    async def _begin(self, task: Task) -> Observation:
        sites, settings = self._webarena, self._webarena.settings
        modes = site_modes(task, settings.writes)
        self._lease = await sites.leases.acquire(modes, settings.lease_timeout_s)
        self._hosts = self._names = sites.hosts(self._lease)
        for last_try in range(1, _LOGIN_TRIES + 1):
            for site in sites.logins_of(task):
                unit = self._lease.units[site]
                self._logins[site] = await sites.logins.lend(unit, site, self._lease.epochs[unit])
            try:
                return await self._guard(self._settings.reset_timeout_s, "reset", lambda: self._reset(task, False))
            except EpisodeFailed as error:
                if error.failure.code != codes.SESSION_EXPIRED or last_try == _LOGIN_TRIES:
                    raise
            # A session of the pool ended before its time: once, that costs a log-in and not the episode.
            await self._discard()
            self._give_back_logins(usable=False)
        raise AssertionError("the last try returns or raises")

    async def _reset(self, task: Task, take_over: bool) -> Observation:
        self._task, self._shown, self._watching = task, None, False
        self._left, self._wrote = set(), set()
        self._context = await self._session.open_context(self._names.bypass, **self._context_options(task))
        self._context.on("page", self._on_page)
        self._context.on("request", self._on_request)
        self._adopt(await typed(self._context.new_page(), "reset"))
        return await self._open_start_pages(task)

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

    async def _show(self, result: dict[str, Any], lines: list[str], first: bool = False) -> Observation:
        seen = await super()._show(result, lines, first)
        late = next((tab for tab in self._tabs if not tab.settled), None)
        if late is not None:
            where, limit = self._hosts.canonical(late.page.url), self._settings.navigation_timeout_s
            detail = f"{where}: the next page did not come within {limit:g} s"
            raise EpisodeFailed(Failure(codes.SITE_TIMEOUT, detail))
        await self._require_login(self._tab)
        return seen

    async def _evaluate(self, answer: str | None) -> Verdict:
        if self._task is None or self._lease is None or not self._tabs:
            raise RuntimeError("no episode is open: call reset first")
        sites, task, self._watching = self._webarena, self._task, False
        return await evaluate(
            task.evaluation,
            answer=None if answer is None else self._names.canonical_text(answer),
            page=self._view(self._tab),
            fresh_page=self._judging_page,
            intent=task.intent,
            rules=rules_of(task),
            judge=sites.judge,
            patience=sites.patience,
            functions=sites.functions(self._lease, self._settings.evaluate_timeout_s),
        )

    async def _judging_page(self) -> WebArenaPageView:
        return self._view(BrowserTab(await typed(self._open_context.new_page(), "evaluate"), self._settings))

    def _view(self, tab: BrowserTab) -> WebArenaPageView:
        return WebArenaPageView(tab, self._names, self._settings, self._require_login)

    # -- what the episode holds ----------------------------------------------------------------

    def _on_request(self, request: Request) -> None:
        """Note when the agent logs itself out, and when it sends a form."""
        site = self._names.site_of(request.url)
        if site is None:
            return
        form = self._webarena.forms.get(site)
        if form is not None and form.logout.search(urlsplit(request.url).path):
            self._left.add(site)
        elif request.method not in _READING and request.is_navigation_request():
            self._wrote.add(site)

    async def _require_login(self, tab: BrowserTab) -> None:
        """Raise ``infra/session_expired`` where the page shows that the site no longer knows the episode's session."""
        site = self._names.site_of(tab.page.url)
        if site is None or site not in self._logins or site in self._left:
            return
        mark = self._webarena.forms[site].logged_out
        if await tab.read(f"document.querySelector({json.dumps(mark)}) !== null"):
            detail = f"{self._hosts.canonical(tab.page.url)} shows {mark}: the site has ended the session"
            raise EpisodeFailed(Failure(codes.SESSION_EXPIRED, detail))

    def _require_lease(self) -> None:
        if self._lease is not None and not self._webarena.leases.holds(self._lease):
            settings = self._webarena.settings
            detail = (
                f"the sites were taken back: the episode took longer than webarena.lease_hold_s "
                f"({settings.lease_hold_s:g} s), or the lease desk was out of reach for webarena.lease_silence_s "
                f"({settings.lease_silence_s:g} s)"
            )
            raise EpisodeFailed(Failure(codes.LEASE_LOST, detail))

    async def _held(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do ``work`` under a valid lease; where it raises or is cancelled, the episode gives back what it holds."""
        done = False
        try:
            self._require_lease()
            result = await work()
            self._require_lease()
            done = True
            return result
        finally:
            if not done:
                await self._end_episode(sessions_usable=False)

    async def _end_episode(self, *, sessions_usable: bool) -> None:
        try:
            await self._discard()
        finally:
            self._give_back_logins(usable=sessions_usable)
            lease, self._lease = self._lease, None
            if lease is not None:
                self._webarena.leases.release(lease, self._wrote)

    def _give_back_logins(self, *, usable: bool) -> None:
        logins, self._logins = self._logins, {}
        for site, login in logins.items():
            self._webarena.logins.give_back(login, usable=usable and site not in self._left)
