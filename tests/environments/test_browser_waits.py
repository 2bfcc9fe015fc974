"""How long a browser episode waits for a tab; nothing is started here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.embedded.sessions import SiteSessions
from environments.embedded.world import EmbeddedWorld
from environments.interface.feedback import line


async def test_a_tab_that_does_not_come_is_told_after_a_short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def never(work: Awaitable[None], timeout_s: float) -> None:
        waits.append(timeout_s)
        work.close()  # type: ignore[attr-defined]
        raise TimeoutError

    browser = BrowserProcess(BrowserSettings())
    env = BrowserEnvironment(browser, EmbeddedWorld(SiteSessions(port=0)))
    monkeypatch.setattr(asyncio, "wait_for", never)
    assert await env.pages.follow_new_tab() == [line("slow")]
    assert waits == [3.0]
    await browser.close()
