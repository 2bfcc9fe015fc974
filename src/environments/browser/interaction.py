"""What the agent does and sees in a slot's tabs.

Owns ``Interaction``. Invariants: what the agent cannot do is feedback, what breaks is ``EpisodeFailed``; an observation
is of a page on the episode's sites, with canonical addresses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from environments.browser.calls import typed
from environments.browser.page_reply import PageReply, Seen, malformed
from environments.browser.slot import BrowserSlot
from environments.browserless.tabs import raise_for_status
from environments.interface.element_names import squeeze
from environments.interface.feedback import Line, line, sentence, told
from environments.interface.keys import read_keys
from environments.interface.observation import Rendered, render
from environments.interface.snapshot import Snapshot
from records import failure_codes as codes
from records.deadline import Deadline
from records.environment import Action, Element, Observation
from records.episodes import Task
from records.failures import EpisodeFailed, Failure

_NEW_TAB_S = 3.0
"""Fixed: the page has said that it opens a tab, and Chromium tells at once; past it the agent is told and stays."""
_SCROLLS = ("scroll_up", "scroll_down")
_PRESSES = ("click", "press_enter", "press_key", "drag")
_TRAVELS = {"go_backward": -1, "go_forward": 1}


class Interaction:
    """Acts on the pages in ``slot`` and looks at them.

    ``shown`` is what the agent last saw, ``deadline`` the end of the act that is under way. ``aside`` is a JavaScript
    expression that a world may set, and ``told_aside`` its value at the moment of the last look, as JSON gives it.
    """

    def __init__(self, slot: BrowserSlot) -> None:
        self.slot = slot
        self.aside = "null"
        self.told_aside: Any = None
        self.shown: Rendered | None = None
        self.deadline = Deadline()

    async def open_start_pages(self, task: Task) -> None:
        """Open the task's start pages, each in a tab of its own (``|AND|`` separates several)."""
        slot = self.slot
        for index, address in enumerate(task.start_url.split("|AND|")):
            url = slot.addresses.real(address.strip())
            if not slot.addresses.allows(url):
                detail = f"{address}: not on the task's sites {', '.join(task.sites)}"
                raise EpisodeFailed(Failure(codes.BAD_START_URL, detail))
            if index:
                await slot.open_tab(url)
            await slot.tabs[index].goto(url, self.deadline.left())
        slot.current, slot.watching = 0, True

    async def look(self, lines: Sequence[Line] = (), *, first: bool = False) -> Observation:
        """Return what is to be seen in the current tab; ``lines`` are feedback, ``first`` makes it the tab's start."""
        return await self._show(await self._read(), list(lines), first)

    async def act(self, action: Action) -> Observation:
        """Apply one action in the current tab and return what is there afterwards."""
        slot, element = self.slot, self.shown.element(action.element_id) if self.shown else None
        refusal = await self._refusal(action, element)
        if refusal:
            return await self.look([line(refusal, action, element)])
        if action.kind == "switch_tab":
            slot.current = int(action.argument or 0)
            await typed(slot.tab.page.bring_to_front(), slot.tab.page.url)
            return await self.look()
        if action.kind == "wait":
            await asyncio.sleep(slot.settings.wait_action_s)
        slot.opened.clear()
        slot.refused = 0
        before = slot.tab
        target = None if element is None or self.shown is None else self.shown.targets[element.element_id]
        argument = before.posted if action.kind in _TRAVELS else action.argument
        if action.kind == "drag" and self.shown is not None:
            argument = str(self.shown.targets[int(action.argument or 0)])
        reply = await before.step({"kind": action.kind, "n": target, "argument": argument}, self._options())
        lines = self._lines(reply, action, element)
        if reply.new_tab:
            lines += await self.follow_new_tab()
        if reply.new_tab or before not in slot.tabs:
            reply = await self._read()
        text = "" if self.shown is None else self.shown.text
        seen = await self._show(reply, lines)
        idle = action.kind in _PRESSES and reply.still and seen.feedback is None and seen.text == text
        return replace(seen, feedback=sentence("nothing")) if idle else seen

    async def follow_new_tab(self) -> list[Line]:
        """Wait for the tab that the page opened and make it the current one; return feedback about it."""
        slot = self.slot
        try:
            await asyncio.wait_for(slot.opened.wait(), _NEW_TAB_S)
        except TimeoutError:
            return [line("slow")]
        if slot.refused:
            return [line("too_many_tabs")]
        slot.current = len(slot.tabs) - 1
        wait_ms = slot.settings.navigation_timeout_s * 1000
        await typed(slot.tab.page.wait_for_load_state("domcontentloaded", timeout=wait_ms), slot.tab.page.url)
        return []

    async def picture(self) -> bytes:
        """Return a PNG of the current tab's viewport."""
        slot = self.slot
        if not slot.settings.paint:
            return await slot.browser.draw(await slot.tab.copy())
        return await typed(slot.tab.page.screenshot(timeout=0), slot.tab.page.url)

    async def _read(self) -> PageReply:
        return await self.slot.tab.step(None, self._options())

    async def _seen_in(self, reply: PageReply) -> Seen:
        """Return what a reply shows; a page that opened a tab by itself is asked once more."""
        seen = reply.seen or (await self._read()).seen
        if seen is None:
            raise malformed(self.slot.tab.page.url, "nothing of the page is in it")
        return seen

    async def _refusal(self, action: Action, element: Element | None) -> str:
        """Return the code of the feedback when the action cannot even be tried, else ''."""
        slot = self.slot
        if action.element_id is not None and element is None:
            return "unknown"
        if action.kind in _SCROLLS and slot.settings.shows_whole_page:
            return "all_shown"
        if action.kind in _TRAVELS:
            position, entries = await slot.tab.history()
            target = position + _TRAVELS[action.kind]
            if not (0 <= target < len(entries) and slot.addresses.allows(entries[target])):
                return "no_back" if action.kind == "go_backward" else "no_forward"
        if action.kind == "drag" and self._dropped_on(action) is None:
            return "no_target"
        if action.kind == "press_key" and read_keys(action.argument or "") is None:
            return "no_key"
        if action.kind == "switch_tab":
            wanted = (action.argument or "").strip()
            if not (wanted.isascii() and wanted.isdigit() and int(wanted) < len(slot.tabs)):
                return "no_tab"
        return ""

    def _dropped_on(self, action: Action) -> Element | None:
        number = action.argument or ""
        known = self.shown is not None and number.isascii() and number.isdigit()
        return self.shown.element(int(number)) if known and self.shown is not None else None

    async def _show(self, reply: PageReply, lines: list[Line], first: bool = False) -> Observation:
        slot, addresses, tab = self.slot, self.slot.addresses, self.slot.tab
        seen = await self._seen_in(reply)
        if seen.url.startswith(("chrome-error:", "http")) and not addresses.allows(seen.url):
            seen, extra = await self._recover(first)
            lines = [*lines, *extra]
        lines = [*lines, *(line(code, detail=detail) for code, detail in tab.take_feedback())]
        if seen.cut:
            lines.append(line("large"))
        self.told_aside = seen.aside
        url = addresses.canonical(seen.url)
        raise_for_status(url, seen.status)
        tab.last_title = squeeze(seen.title) or url
        snapshot = Snapshot(
            url=seen.url,
            title=seen.title,
            root=seen.root,
            status=seen.status,
            tabs=tuple(t.last_title for t in slot.tabs),
            tab=slot.current,
            rich=seen.rich,
        )
        # A large page would keep the other episodes of this worker waiting.
        work = asyncio.to_thread(render, snapshot, slot.settings) if seen.large else None
        try:
            self.shown = shown = render(snapshot, slot.settings) if work is None else await work
        except RecursionError as error:
            raise malformed(seen.url, "it nests deeper than the page script lets it") from error
        if first:
            await tab.forget_history()
        feedback, refused = told(lines)
        return Observation(
            shown.text, url, squeeze(seen.title), shown.page_text, shown.elements, feedback, refused=refused
        )

    async def _recover(self, first: bool) -> tuple[Seen, list[Line]]:
        """Step back from an error page that a refused address led to; a site that is down fails the episode.

        A tab that a page opened and that shows nothing of the task's sites from the first is closed.
        """
        tab = self.slot.tab
        position, entries = await tab.history()
        wanted = entries[position] if entries else ""
        useless = position == 0 and len(self.slot.tabs) > 1
        if first or (position == 0 and not useless) or self.slot.addresses.allows(wanted):
            raise EpisodeFailed(Failure(codes.SITE_UNREACHABLE, f"{wanted} could not be loaded"))
        if useless:
            await typed(tab.page.close(), wanted)
        else:
            await typed(tab.page.go_back(wait_until="domcontentloaded"), wanted)
        return await self._seen_in(await self._read()), [line("refused", detail=wanted)]

    def _options(self) -> dict[str, Any]:
        settings = self.slot.settings
        return {
            "origins": list(self.slot.addresses.origins),
            "settle_ms": settings.settle_timeout_s * 1000,
            "look_ms": settings.look_timeout_s * 1000,
            "viewport_only": settings.viewport_only,
            "webrl": settings.observation_format == "webrl",
            "aside": self.aside,
        }

    def _lines(self, reply: PageReply, action: Action, element: Element | None) -> list[Line]:
        """Turn the page script's codes into lines for the agent."""
        lines = [line(reply.code, action, element, reply.detail)] if reply.code else []
        if reply.invalid >= 0 and self.shown is not None and reply.invalid in self.shown.targets:
            wrong = self.shown.elements[self.shown.targets.index(reply.invalid)]
            lines.append(line("invalid", detail=wrong.name))
        lines += [line(code, detail=self.slot.addresses.canonical(detail)) for code, detail in reply.feedback]
        return lines
