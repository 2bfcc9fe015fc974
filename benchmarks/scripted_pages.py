"""Pages and actions that every browser stack is given alike: ten of MiniWoB++, the two largest embedded ones.

Owns which pages and which actions. Elements are named by a CSS selector and a position, so that each stack can
look up its own name for them outside the time that is measured. Nothing here tries to solve a task.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urldefrag, urljoin

from environments.browserless.environment import BrowserlessEnvironment
from environments.miniwob.tasks import make_task
from records.episodes import Task
from records.failures import EpisodeFailed
from sites.app import create_app
from sites.registry import SITES

SEED = 7
_MOST_PAGES = 120


@dataclass(frozen=True)
class Press:
    """One action: ``kind`` of the grammar on the ``nth`` element that ``css`` finds, maybe with ``text``."""

    kind: str
    css: str = ""
    nth: int = 0
    text: str = ""


@dataclass(frozen=True)
class ScriptedPage:
    """A task's start page and what is done on it; ``miniwob`` is the page's name there, else empty."""

    name: str
    task: Task
    actions: tuple[Press, ...]
    miniwob: str = ""

    def plain(self, url: str) -> dict[str, Any]:
        """Return what another interpreter needs, as JSON, with the page's address."""
        return {"name": self.name, "miniwob": self.miniwob, "url": url, "actions": [asdict(a) for a in self.actions]}


_SUBMIT = Press("click", "#subbtn")
_MINIWOB: dict[str, tuple[Press, ...]] = {
    "click-test": (_SUBMIT,),
    "click-checkboxes": (Press("click", "#boxes input"), Press("click", "#boxes input", 1), _SUBMIT),
    "enter-text": (Press("type", "#tt", text="words"), _SUBMIT),
    "login-user": (Press("type", "#username", text="ann"), Press("type", "#password", text="pass word"), _SUBMIT),
    "choose-list": (Press("select", "#options", text="first"), Press("click", "#area button")),
    "click-tab": (Press("click", "#area ul a", 1), Press("click", "#area ul a")),
    "click-link": (Press("hover", "#area .alink"), Press("click", "#area .alink")),
    "enter-password": (Press("type", "#password", text="abc"), Press("type", "#verify", text="abc"), _SUBMIT),
    "search-engine": (Press("type", "#search-text", text="Ann"), Press("click", "#search")),
    "click-dialog-2": (Press("click", ".ui-dialog button"),),
}
_EMBEDDED = (
    Press("type", "input:is([type=search], [type=text], :not([type]))", text="lamp"),
    Press("hover", "main a[href]"),
    Press("click", "main a[href]", 1),
    Press("go_backward"),
)


def miniwob_pages() -> list[ScriptedPage]:
    """Return the ten pages of MiniWoB++."""
    return [ScriptedPage(name, make_task(name, SEED), actions, name) for name, actions in _MINIWOB.items()]


def embedded_pages(count: int = 2) -> list[ScriptedPage]:
    """Return the ``count`` pages of most elements among those that links lead to, at most one of a template's."""
    sizes = asyncio.run(_sizes())
    largest = sorted(sizes, key=lambda address: -sizes[address])
    chosen: dict[str, str] = {}
    for address in largest:
        chosen.setdefault(address.split("?")[0].rstrip("0123456789"), address)
    return [ScriptedPage(f"{a} ({sizes[a]} elements)", start_at(a), _EMBEDDED) for a in list(chosen.values())[:count]]


def start_at(address: str) -> Task:
    """Return a task without a goal that starts at a canonical address."""
    site = address.removeprefix("__").partition("__")[0].lower()
    return Task(f"look.{site}", (site,), "look around", address, {}, "look", require_login=True)


async def _sizes() -> dict[str, int]:
    """Return the number of elements of each page within reach, by canonical address."""
    found: dict[str, int] = {}
    for site in SITES:
        env = BrowserlessEnvironment(create_app(SEED))
        waiting, seen = [f"__{site.upper()}__/"], set[str]()
        while waiting and len(seen) < _MOST_PAGES:
            address = waiting.pop(0)
            if address in seen:
                continue
            seen.add(address)
            try:
                await env.reset(start_at(address))
            except EpisodeFailed:  # a link of another site, or one that answers with an error
                continue
            page = env._open_tabs.page
            if page.root.cssselect("main a[href]")[1:] and page.root.cssselect("input"):
                found[address] = sum(1 for _ in page.root.iter("*"))
            links = (urldefrag(urljoin(page.url, a.get("href")))[0] for a in page.root.iter("a") if a.get("href"))
            waiting += [env._addresses.canonical(link) for link in links]
        await env.close()
    return found
