"""Pages held against a second opinion of what a person could use there and read.

Owns ``audit_pages``, whose findings ``waymark env audit`` prints. Invariants: pages are opened as an episode opens
them; everything that was started is closed; nothing is pressed, a mouse is moved only.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from environments.addresses import EpisodeAddresses, proxy_bypass
from environments.browser import chromium
from environments.browser.environment import BrowserEnvironment
from environments.browser.interaction import Interaction
from environments.browser.page_audit import PageAudit, compare
from environments.browser.page_opinion import second_opinion
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.browser.slot import BrowserSlot
from environments.browser.wire import Wire
from environments.hosted import hosted
from records.deadline import Deadline
from records.environment import Action
from records.episodes import Task

_LATER_S = 0.7
"""Fixed: past it a page that has settled is not expected to change by itself."""
_MOST_HOVERED = 5


@dataclass(frozen=True, slots=True)
class AuditedPage:
    """A page, its audit, whether it changed by itself after it was observed, and the median time of a step."""

    address: str
    audit: PageAudit
    stale: bool
    step_ms: float


def audit_pages(
    where: str, *, tasks: int = 3, deadline_s: float, options: Mapping[str, object] | None = None
) -> list[AuditedPage]:
    """Audit the page at an address, or the start pages of ``tasks`` tasks of the environment called ``where``.

    Each page may take ``deadline_s`` seconds.

    Raises:
        ValueError: when there is no such environment, it has no browser, or its options are wrong.
        EpisodeFailed: when the browser does not start or a page cannot be opened.
    """
    by_address = where.startswith(("http://", "https://"))
    return asyncio.run(_address(where, deadline_s) if by_address else _tasks(where, options, tasks, deadline_s))


async def _address(url: str, deadline_s: float) -> list[AuditedPage]:
    parts = urlsplit(url)
    origin, host = f"{parts.scheme}://{parts.netloc}", parts.hostname or ""
    browser = BrowserProcess(BrowserSettings(), f"{chromium.LOOPBACK_ONLY}, EXCLUDE {host}")
    slot = BrowserSlot(browser, browser.settings)
    pages = Interaction(slot)
    try:
        await slot.open_context(proxy_bypass([origin]))
        slot.addresses = EpisodeAddresses({"page": origin})
        pages.deadline = Deadline(deadline_s, what="audit")
        start = f"__PAGE__{url.removeprefix(origin)}"
        await pages.open_start_pages(Task("audit.page", ("page",), "look", start, {}, "audit"))
        return [await _audited(pages, slot, deadline_s)]
    finally:
        await slot.discard()
        await browser.close()


async def _tasks(name: str, options: Mapping[str, object] | None, tasks: int, deadline_s: float) -> list[AuditedPage]:
    found = []
    async with hosted(name, options) as running:
        environment = await running.host.environment()
        if not isinstance(environment, BrowserEnvironment):
            raise ValueError(f"{name!r} has no browser whose pages could be audited")
        if running.asking is not None:
            raise ValueError(f"{name!r} lends its sites to episodes; audit the address of a page instead")
        try:
            for task in running.tasks.task_set(0, "train", tasks, at_least=1):
                await environment.reset(task, deadline=Deadline(deadline_s, what="audit"))
                found.append(await _audited(environment.pages, environment.slot, deadline_s))
        finally:
            await environment.close()
    return found


async def _audited(pages: Interaction, slot: BrowserSlot, deadline_s: float) -> AuditedPage:
    """Observe the page that is open, hold it against the second opinion, look again and move the mouse."""
    pages.deadline = Deadline(deadline_s, what="audit")
    seen = await pages.look(first=True)
    await asyncio.sleep(_LATER_S)
    later = await pages.look()
    assert pages.shown is not None
    wire = Wire(slot.tab.page)
    async with asyncio.timeout(deadline_s):
        audit = compare(later.text, later.elements, await second_opinion(wire, pages.shown.targets))
    times = []
    for element in later.elements[:_MOST_HOVERED]:
        started = time.perf_counter()
        await pages.act(Action("hover", element_id=element.element_id))
        times.append(1000 * (time.perf_counter() - started))
    step_ms = statistics.median(times) if times else 0.0
    return AuditedPage(seen.url, audit, later.text != seen.text, step_ms)
