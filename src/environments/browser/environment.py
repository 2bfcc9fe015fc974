"""Episodes in a real browser over the embedded sites.

Owns ``BrowserEnvironment``: one slot (context, tabs, session token) in a worker's ``BrowserSession``.
Invariants: one episode at a time, in a site session that no other slot knows and that is made afresh
for it; what the agent cannot do is feedback, what breaks is ``EpisodeFailed``. An episode takes over the
context (and so the warm renderer process) of the one before it only when that one ended with every page
settled; after a failure, a timeout or a cancellation the next one gets a new context and a new token, so
that no late request can reach its session.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from playwright.async_api import BrowserContext, Page
from playwright.async_api import Error as PlaywrightError

from environments.browser.page_reply import malformed
from environments.browser.page_view import BrowserPageView
from environments.browser.session import BrowserSession
from environments.browser.settings import BrowserSettings
from environments.browser.tab import BrowserTab, deadline, typed, unless_crashed
from environments.browserless.tabs import raise_for_status
from environments.embedded.sessions import SiteEndpoint, SiteSessions
from environments.hosts import EpisodeHosts, embedded_bypass
from environments.interface.element_names import squeeze
from environments.interface.feedback import joined, sentence
from environments.interface.observation import Rendered, render
from environments.interface.snapshot import RichView, Snapshot
from judges.evaluators import evaluate
from records import failure_codes as codes
from records.environment import Action, Element, Observation, Verdict
from records.episodes import Task
from records.failures import EpisodeFailed, Failure

__all__ = ["BrowserEnvironment", "BrowserSession", "SiteEndpoint", "SiteSessions"]

T = TypeVar("T")

_LOG = logging.getLogger(__name__)
_SCROLLS = ("scroll_up", "scroll_down")
_PRESSES = ("click", "press_enter")
_TRAVELS = {"go_backward": -1, "go_forward": 1}
_MOST_REFUSED = 20
"""Tabs beyond the limit that are closed one by one; an episode that opens more of them in a step has failed."""


class BrowserEnvironment:
    """An ``Environment`` in a context of ``session`` over the sites at ``sites``."""

    def __init__(self, session: BrowserSession, sites: SiteSessions, settings: BrowserSettings | None = None) -> None:
        self._session, self._sites = session, sites
        self._settings = settings or session.settings
        self._reusable = False
        self._episodes = 0
        self._context: BrowserContext | None = None
        self._tabs: list[BrowserTab] = []
        self._current = 0
        self._judging_tab: BrowserTab | None = None
        self._opened = asyncio.Event()
        self._crashed = asyncio.Event()
        self._refused = 0
        self._storm = False
        self._closings: set[asyncio.Future[None]] = set()
        self._watching = False
        self._token = ""
        self._task: Task | None = None
        self._hosts = EpisodeHosts({})
        self._shown: Rendered | None = None

    async def reset(self, task: Task, *, seed: int = 0, episode_id: str = "") -> Observation:
        """Give the task a fresh session and open its start pages (``|AND|`` separates several)."""
        take_over = (
            self._reusable and not self._crashed.is_set() and self._episodes < self._settings.episodes_per_context
        )
        self._episodes += 1
        if self._crashed.is_set():
            self._session.page_ended_for_its_memory()  # an end between two episodes is nobody's failure
        self._crashed.clear()
        return await self._guard(self._settings.reset_timeout_s, "reset", lambda: self._reset(task, take_over))

    async def step(self, action: Action) -> Observation:
        """Apply one action; see ``Environment.step``."""
        if not self._tabs:
            raise RuntimeError("no episode is open: call reset first")
        what = f"{action.kind} on {self._hosts.canonical(self._tab.page.url)}"
        return await self._guard(self._settings.step_timeout_s, what, lambda: self._step(action))

    async def evaluate(self, answer: str | None) -> Verdict:
        """Judge the episode by its task's evaluators, on a fresh page of the same context."""
        return await self._guard(self._settings.evaluate_timeout_s, "evaluate", lambda: self._evaluate(answer))

    async def screenshot(self) -> bytes | None:
        """Return a PNG of the viewport; None before the first episode."""
        if not self._tabs:
            return None
        return await self._guard(self._settings.screenshot_timeout_s, "screenshot", self._screenshot)

    async def close(self) -> None:
        """Close the context and drop the session; safe to call twice."""
        await self._discard()

    # -- one episode ---------------------------------------------------------------------------

    async def _reset(self, task: Task, take_over: bool) -> Observation:
        login = task.sites if task.require_login else ()
        self._task, self._shown, self._watching = task, None, False
        await self._fresh_context(take_over)
        self._hosts = EpisodeHosts.embedded(task.sites, self._token, self._sites.port)
        await self._sites.open_session(self._token, task.sites, login, self._settings.site_timeout_s)
        return await self._open_start_pages(task)

    async def _open_start_pages(self, task: Task) -> Observation:
        for index, address in enumerate(task.start_url.split("|AND|")):
            url = self._hosts.real(address.strip())
            if not self._hosts.allows(url):
                detail = f"{address}: not on the task's sites {', '.join(task.sites)}"
                raise EpisodeFailed(Failure(codes.BAD_START_URL, detail))
            if index:
                self._adopt(await typed(self._open_context.new_page(), url))
            await self._tabs[index].goto(url, self._settings.reset_timeout_s)
        self._current, self._watching = 0, True
        return await self._show(await self._tab.step(None, self._options()), [], first=True)

    async def _step(self, action: Action) -> Observation:
        element = self._element(action)
        refusal = await self._refusal(action, element)
        if refusal:
            return await self._show(await self._tab.step(None, self._options()), [sentence(refusal, action, element)])
        if action.kind == "switch_tab":
            self._current = int(action.argument or 0)
            await typed(self._tab.page.bring_to_front(), self._tab.page.url)
            return await self._show(await self._tab.step(None, self._options()), [])
        if action.kind == "wait":
            await asyncio.sleep(self._settings.wait_action_s)
        self._opened.clear()
        self._refused = 0
        before = self._tab
        target = None if element is None or self._shown is None else self._shown.targets[element.element_id]
        argument = before.posted if action.kind in _TRAVELS else action.argument
        command = {"kind": action.kind, "n": target, "argument": argument}
        result = await before.step(command, self._options())
        lines = self._lines(result, action, element)
        if result["new_tab"]:
            lines += await self._follow_new_tab()
        if result["new_tab"] or before not in self._tabs:
            result = await self._tab.step(None, self._options())
        text = "" if self._shown is None else self._shown.text
        seen = await self._show(result, lines)
        idle = action.kind in _PRESSES and result["still"] and seen.feedback is None and seen.text == text
        return replace(seen, feedback=sentence("nothing")) if idle else seen

    async def _refusal(self, action: Action, element: Element | None) -> str:
        """Return the code of the feedback when the action cannot even be tried, else ''."""
        if action.element_id is not None and element is None:
            return "unknown"
        if action.kind in _SCROLLS and self._settings.shows_whole_page:
            return "all_shown"
        if action.kind in _TRAVELS:
            position, entries = await self._tab.history()
            target = position + _TRAVELS[action.kind]
            if not (0 <= target < len(entries) and self._hosts.allows(entries[target])):
                return "no_back" if action.kind == "go_backward" else "no_forward"
        if action.kind == "switch_tab":
            wanted = (action.argument or "").strip()
            if not (wanted.isascii() and wanted.isdigit() and int(wanted) < len(self._tabs)):
                return "no_tab"
        return ""

    async def _follow_new_tab(self) -> list[str]:
        """Wait for the tab that the page opened and make it the current one."""
        try:
            await asyncio.wait_for(self._opened.wait(), self._settings.new_tab_timeout_s)
        except TimeoutError:
            return [sentence("slow")]
        if self._refused:
            return [sentence("too_many_tabs")]
        self._current = len(self._tabs) - 1
        wait_ms = self._settings.navigation_timeout_s * 1000
        await typed(self._tab.page.wait_for_load_state("domcontentloaded", timeout=wait_ms), self._tab.page.url)
        return []

    async def _show(self, result: dict[str, Any], lines: list[str], first: bool = False) -> Observation:
        tab = self._tab
        if "root" not in result:
            result = await tab.step(None, self._options())  # a page that opens tabs by itself is asked once more
            if "root" not in result:
                raise malformed(tab.page.url, "nothing of the page is in it")
        if result["url"].startswith(("chrome-error:", "http")) and not self._hosts.allows(result["url"]):
            result, extra = await self._recover(first)
            lines = [*lines, *extra]
        lines = [*lines, *(sentence(code, detail=detail) for code, detail in tab.take_feedback())]
        if result["cut"]:
            lines.append(sentence("large"))
        raise_for_status(self._hosts.canonical(result["url"]), result["status"])
        url = self._hosts.canonical(result["url"])
        tab.last_title = squeeze(result["title"]) or url
        rich = RichView(result["tree"], *result["window"]) if "tree" in result else None
        snapshot = Snapshot(
            url=result["url"],
            title=result["title"],
            root=result["root"],
            status=result["status"],
            tabs=tuple(t.last_title for t in self._tabs),
            tab=self._current,
            rich=rich,
        )
        # A large page would keep the other episodes of this worker waiting.
        work = asyncio.to_thread(render, snapshot, self._settings) if result["large"] else None
        self._shown = render(snapshot, self._settings) if work is None else await work
        if first:
            await tab.forget_history()
        return Observation(
            self._shown.text, url, squeeze(result["title"]), self._shown.page_text, self._shown.elements, joined(lines)
        )

    async def _recover(self, first: bool) -> tuple[dict[str, Any], list[str]]:
        """Step back from an error page that a refused redirect led to; a site that is down fails the episode."""
        position, entries = await self._tab.history()
        wanted = entries[position] if entries else ""
        if first or position == 0 or self._hosts.allows(wanted):
            raise EpisodeFailed(Failure(codes.SITE_UNREACHABLE, f"{wanted} could not be loaded"))
        await typed(self._tab.page.go_back(wait_until="domcontentloaded"), wanted)
        return await self._tab.step(None, self._options()), [sentence("refused", detail=wanted)]

    async def _evaluate(self, answer: str | None) -> Verdict:
        if self._task is None or not self._tabs:
            raise RuntimeError("no episode is open: call reset first")
        task, self._watching = self._task, False
        # What the agent saw after its session was lost was not the task; such an episode is not judged.
        await self._sites.require_session(self._token, self._settings.site_timeout_s)
        last = BrowserPageView(self._tab, self._hosts, self._settings)
        verdict = await evaluate(
            task.evaluation, answer=answer, page=last, fresh_page=self._judging_page, intent=task.intent
        )
        if self._judging_tab is not None:
            await self._judging_tab.quieten()
        return verdict

    async def _judging_page(self) -> BrowserPageView:
        """Return the context's page for evaluators; it stays for the next episode, for a new one costs 100 ms."""
        if self._judging_tab is None:
            self._judging_tab = BrowserTab(await typed(self._open_context.new_page(), "evaluation"), self._settings)
            self._judging_tab.page.on("crash", lambda _: self._crashed.set())
        return BrowserPageView(self._judging_tab, self._hosts, self._settings)

    async def _screenshot(self) -> bytes:
        if not self._settings.paint:
            return await self._session.draw(await self._tab.copy())
        timeout_ms = self._settings.screenshot_timeout_s * 1000
        return await typed(self._tab.page.screenshot(timeout=timeout_ms), self._tab.page.url)

    # -- the slot ------------------------------------------------------------------------------

    @property
    def _tab(self) -> BrowserTab:
        return self._tabs[self._current]

    @property
    def _open_context(self) -> BrowserContext:
        assert self._context is not None
        return self._context

    def _element(self, action: Action) -> Element | None:
        elements, number = (self._shown.elements if self._shown else ()), action.element_id
        return elements[number] if number is not None and 0 <= number < len(elements) else None

    def _options(self) -> dict[str, Any]:
        return {
            "origins": list(self._hosts.origins),
            "settle_ms": self._settings.settle_timeout_s * 1000,
            "look_ms": self._settings.look_timeout_s * 1000,
            "viewport_only": self._settings.viewport_only,
            "webrl": self._settings.observation_format == "webrl",
        }

    def _lines(self, result: dict[str, Any], action: Action, element: Element | None) -> list[str]:
        """Turn the page script's codes into lines for the agent."""
        lines = [sentence(result["code"], action, element, result["detail"])] if result["code"] else []
        if result["invalid"] >= 0 and self._shown is not None and result["invalid"] in self._shown.targets:
            wrong = self._shown.elements[self._shown.targets.index(result["invalid"])]
            lines.append(sentence("invalid", detail=wrong.name))
        lines += [sentence(n["code"], detail=self._hosts.canonical(n["detail"])) for n in result["feedback"]]
        return lines

    async def _leave(self) -> bool:
        """Leave the last episode's page and return True; False where its context must go with it."""
        # What a tab keeps for an origin can be forgotten only while it shows that origin, hence one site only; and
        # where pages opened others, more of them may be under way.
        alone = len(self._tabs) == 1 and self._context and len(self._context.pages) == len(self._all_tabs)
        if not alone or len(self._hosts.origins) != 1:
            return False
        tab, origin = self._tab, self._hosts.origins[0]
        # A page that cannot be left, or ends while it is left, is not the next episode's failure.
        crashed, self._crashed = self._crashed, asyncio.Event()
        try:
            async with asyncio.timeout(self._settings.close_timeout_s):
                await unless_crashed(self._crashed, lambda: tab.leave(origin))
        except (EpisodeFailed, TimeoutError) as error:
            _LOG.debug("the last page is not left, its context goes: %s", error)
            self._session.page_ended_for_its_memory()
            return False
        finally:
            self._crashed = crashed
        return True

    async def _fresh_context(self, take_over: bool) -> None:
        """Have one tab without a past: the old one where it may be taken over, or that of a new context."""
        if take_over and await self._leave():
            return
        await self._discard()
        self._episodes = 1
        self._token = f"e{secrets.token_hex(8)}"
        self._context = await self._session.open_context(embedded_bypass(self._token, self._sites.port))
        self._context.on("page", self._on_page)
        self._adopt(await typed(self._context.new_page(), "reset"))

    def _on_page(self, page: Page) -> None:
        if not self._watching:
            return
        if len(self._tabs) < self._settings.max_tabs:
            self._adopt(page)
        elif self._refused < _MOST_REFUSED:
            self._refused += 1
            closing = asyncio.ensure_future(_close_quietly(page))
            self._closings.add(closing)
            closing.add_done_callback(self._closings.discard)
        else:
            self._storm = True
        self._opened.set()

    def _adopt(self, page: Page) -> None:
        tab = BrowserTab(page, self._settings)
        self._tabs.append(tab)
        page.on("crash", lambda _: self._crashed.set())
        page.on("close", lambda _: self._forget(tab))

    def _forget(self, tab: BrowserTab) -> None:
        if tab in self._tabs and len(self._tabs) > 1:
            index = self._tabs.index(tab)
            self._tabs.remove(tab)
            self._current = max(0, self._current - (index <= self._current))

    async def _discard(self) -> None:
        """Close the context and drop its session; what is dead already need not say goodbye."""
        context, self._context, self._tabs, self._current = self._context, None, [], 0
        self._judging_tab, self._storm, self._refused = None, False, 0
        token, self._token = self._token, ""
        if context is not None:
            try:
                async with asyncio.timeout(self._settings.close_timeout_s):
                    await context.close()
            except (PlaywrightError, TimeoutError) as error:
                _LOG.debug("context of %s did not close: %s", token, error)
        if token:
            try:
                await self._sites.drop_session(token, self._settings.close_timeout_s)
            except EpisodeFailed as error:
                _LOG.debug("session %s was not dropped: %s", token, error)

    async def _guard(self, seconds: float, what: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run one piece of work under its deadline; only one that ends well leaves the slot reusable."""
        self._reusable = False
        try:
            done = await deadline(seconds, what, lambda: unless_crashed(self._crashed, work))
        except EpisodeFailed as error:
            ended = self._session.page_ended_for_its_memory() if error.failure.code == codes.BROWSER_CRASHED else None
            if ended is None:
                raise
            raise EpisodeFailed(ended) from error
        if self._storm:
            detail = f"{what}: a page opened more than {_MOST_REFUSED} tabs beyond those that an episode may have"
            raise EpisodeFailed(Failure(codes.POPUP_STORM, detail))
        self._reusable = self._refused == 0 and all(tab.settled for tab in self._all_tabs)
        return done

    @property
    def _all_tabs(self) -> list[BrowserTab]:
        return [*self._tabs, *([self._judging_tab] if self._judging_tab else [])]


async def _close_quietly(page: Page) -> None:
    """Close a page that nobody asked for; where it is gone or does not answer, its context's end takes it along."""
    try:
        await page.close()
    except PlaywrightError as error:
        _LOG.debug("unwanted page: %s", error)
