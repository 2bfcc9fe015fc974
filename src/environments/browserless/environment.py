"""Episodes without a browser: the embedded sites' ASGI application driven in this process.

Owns ``BrowserlessEnvironment``, for unit tests and parameter sweeps; reported results come from
``browser``. Invariants: same observations, feedback and evaluators as the real browser on pages
without scripts (tested); one session token per episode.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from typing import Any

from cssselect import SelectorError
from lxml import html
from lxml.html import HtmlElement

from environments.addresses import EpisodeAddresses
from environments.browser.settings import BrowserSettings
from environments.browserless import html_actions
from environments.browserless.asgi_client import AsgiClient
from environments.browserless.effects import Effect, PageRequest
from environments.browserless.html_page import HtmlPage
from environments.browserless.tabs import Tabs
from environments.environment import Grant
from environments.interface.element_names import squeeze
from environments.interface.feedback import Line, line, sentence, told
from environments.interface.keys import read_keys
from environments.interface.observation import Rendered, inner_text, render
from judges.interface import EndedEpisode, OpenVerdict, TrajectoryJudge
from judges.verdicts import Evaluators
from records import failure_codes as codes
from records.deadline import Deadline
from records.environment import Action, Element, Observation, Verdict
from records.episodes import Task
from records.failures import EpisodeFailed, Failure
from sites.sessions import SessionStore
from sites.tasks import needs_browser

_LOCATOR = re.compile(
    r"""\s*\(?\s*document\.querySelector\(\s*(["'])(?P<css>.*?)\1\s*\)\s*\)?\s*\??\.\s*(?P<what>outerText|innerText|textContent|value)\s*;?\s*"""
)


class BrowserlessEnvironment:
    """An ``Environment`` over ``app`` (``sites.app.create_app()``); the application may take as long as the act."""

    def __init__(self, app: Any, settings: BrowserSettings | None = None, judge: TrajectoryJudge | None = None) -> None:
        self._app = app
        self._judge: TrajectoryJudge = judge or Evaluators()
        self._settings = settings or BrowserSettings()
        self._token = ""
        self._task: Task | None = None
        self._addresses = EpisodeAddresses({})
        self._tabs: Tabs | None = None
        self._shown: Rendered | None = None

    async def reset(
        self,
        task: Task,
        *,
        seed: int = 0,
        episode_id: str = "",
        deadline: Deadline | None = None,
        grant: Grant | None = None,
    ) -> Observation:
        """Give the task a fresh session and open its start pages (``|AND|`` separates several)."""
        await self.close()
        if needs_browser(task):
            detail = f"the pages of {task.template} need their scripts; play it in the environment 'embedded'"
            raise EpisodeFailed(Failure(codes.NEEDS_BROWSER, detail))
        self._token, self._task = f"e{secrets.token_hex(8)}", task
        login = task.sites if task.require_login else ()
        sessions: SessionStore = self._app.state.sessions
        if task.data_seed is not None:
            await asyncio.to_thread(sessions.prepare, task.sites, task.data_seed)
        sessions.reset(self._token, login=login, sites=task.sites, data_seed=task.data_seed)
        self._addresses = EpisodeAddresses.embedded(task.sites, self._token)
        client = AsgiClient(self._app)
        self._tabs = Tabs(client, self._addresses, self._settings.max_tabs)
        await (deadline or Deadline(what="reset")).run(self._open_start_pages(self._tabs, task))
        return self._observe([])

    async def step(self, action: Action, deadline: Deadline | None = None) -> Observation:
        """Apply one action; see ``Environment.step``."""
        effect = await (deadline or Deadline(what=action.kind)).run(self._apply(self._open_tabs, action))
        if not effect.code:
            return self._observe([])
        detail = self._addresses.canonical(effect.detail)
        return self._observe([line(effect.code, action, self._element(action), detail)])

    async def evaluate(self, answer: str | None, deadline: Deadline | None = None) -> Verdict | OpenVerdict:
        """Judge the episode by its task's evaluators."""
        tabs = self._open_tabs
        assert self._task is not None

        async def fresh_page() -> _View:
            return _View(tabs.alike(), self._addresses, None)

        last = _View(tabs.alike(), self._addresses, tabs.page)
        judged = self._judge.verdict(EndedEpisode(self._task, answer, last, fresh_page, deadline=deadline))
        return await (deadline or Deadline(what="evaluate")).run(judged)

    async def screenshot(self, deadline: Deadline | None = None) -> bytes | None:
        """Return None: there are no pixels here."""
        return None

    async def close(self) -> None:
        """Drop the episode's session."""
        if self._token:
            self._app.state.sessions.drop(self._token)
        self._token, self._tabs, self._shown = "", None, None

    async def _open_start_pages(self, tabs: Tabs, task: Task) -> None:
        for address in task.start_url.split("|AND|"):
            opened = await tabs.open_tab(PageRequest(self._addresses.real(address.strip())))
            if opened.code:
                raise EpisodeFailed(Failure(codes.BAD_START_URL, sentence(opened.code, detail=address)))
        tabs.current = 0

    @property
    def _open_tabs(self) -> Tabs:
        if self._tabs is None:
            raise RuntimeError("no episode is open: call reset first")
        return self._tabs

    def _element(self, action: Action) -> Element | None:
        return self._shown.element(action.element_id) if self._shown else None

    def _observe(self, lines: list[Line]) -> Observation:
        tabs = self._open_tabs
        snapshot = tabs.page.snapshot(tabs.titles(), tabs.current)
        self._shown = render(snapshot, self._settings)
        feedback, refused = told(lines)
        return Observation(
            text=self._shown.text,
            url=self._addresses.canonical(snapshot.url),
            title=squeeze(snapshot.title),
            page_text=self._shown.page_text,
            elements=self._shown.elements,
            feedback=feedback,
            refused=refused,
        )

    async def _apply(self, tabs: Tabs, action: Action) -> Effect:
        kind = action.kind
        if kind in ("go_backward", "go_forward"):
            return await tabs.travel(-1 if kind == "go_backward" else 1)
        if kind == "switch_tab":
            return tabs.switch(action.argument or "")
        if action.element_id is not None and self._element(action) is None:
            return Effect(code="unknown")
        if kind in ("scroll_up", "scroll_down"):
            return Effect(code="all_shown")
        if kind == "wait":
            return Effect()
        effect = _act(tabs.page, action, self._target(tabs.page, action))
        return effect if effect.request is None else await tabs.follow(effect.request)

    def _target(self, page: HtmlPage, action: Action) -> HtmlElement | None:
        if action.element_id is None or self._shown is None:
            return None
        return page.refs[self._shown.targets[action.element_id]]


def _act(page: HtmlPage, action: Action, target: HtmlElement | None) -> Effect:
    argument = action.argument or ""
    if action.kind == "press_enter":
        return html_actions.press_enter(page, target)
    if action.kind == "press_key":
        pressed = read_keys(argument)
        if pressed is None:
            return Effect(code="no_key")
        entered = pressed.key == "Enter" and not pressed.modifiers
        return html_actions.press_enter(page, target) if entered else Effect(code="nothing")
    if action.kind == "drag":
        return Effect(code="nothing")
    if target is None:
        raise ValueError(f"{action.kind} needs an element and none was given; parse actions with grammar.parse")
    if action.kind == "click":
        return html_actions.click(page, target)
    if action.kind == "select":
        return html_actions.select(page, target, argument)
    if action.kind in ("type", "search"):
        typed = html_actions.type_text(page, target, argument)
        return typed if typed.code or action.kind == "type" else html_actions.press_enter(page, target)
    if action.kind in ("hover", "right_click"):
        return Effect()
    raise ValueError(f"unknown action kind {action.kind!r}")


class _View:
    """A page as the evaluators see it; locators are read, never run."""

    def __init__(self, tabs: Tabs, addresses: EpisodeAddresses, page: HtmlPage | None) -> None:
        self._tabs, self._addresses, self._page = tabs, addresses, page

    async def url(self) -> str:
        return self._addresses.canonical(self._page.url) if self._page else "about:blank"

    async def open(self, url: str) -> None:
        effect = await self._tabs.open_tab(PageRequest(self._addresses.real(url)))
        if effect.code == "refused":
            raise EpisodeFailed(Failure(codes.EVALUATION_URL_REFUSED, f"{url} is not on the task's sites"))
        self._page = self._tabs.page

    async def content_text(self, locator: str) -> str:
        if self._page is None:
            return ""
        if not locator:
            return str(html.tostring(self._page.root, encoding="unicode"))
        match = _LOCATOR.fullmatch(locator)
        if match is None:
            detail = f"{locator!r}: without a browser only document.querySelector('…').outerText and the like are read"
            raise EpisodeFailed(Failure(codes.LOCATOR_NEEDS_BROWSER, detail))
        return _content(self._page, match["css"], match["what"])


def _content(page: HtmlPage, css: str, what: str) -> str:
    try:
        found = page.root.cssselect(css)
    except SelectorError:
        return ""
    if not found:
        return ""
    if what == "value":
        return page.value(found[0]) if found[0].tag in ("input", "textarea") else found[0].get("value", "")
    if what == "textContent":
        return str(found[0].text_content())
    return inner_text(page.node_of(found[0]))
