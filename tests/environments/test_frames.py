"""What a page does by frames is seen without frames as by a browser that draws, and costs no waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import replace

import pytest
import pytest_asyncio

from benchmarks.moving_pages import PAGES, opened, written
from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.embedded.sessions import SiteSessions
from environments.embedded.world import EmbeddedWorld
from environments.miniwob.page_server import PageServer
from records.environment import Action
from tests.environments.conftest import QUICK

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

WAITED_S = 15.0
PATIENT = replace(QUICK, settle_timeout_s=2 * WAITED_S)
"""A step that waits out its limit takes twice as long as ``WAITED_S``, on a busy machine too."""
LATE_S = 10.0
"""A browser that draws has as long to come to what it shows in the end."""


@pytest.fixture(scope="module")
def browser_settings() -> BrowserSettings:
    return PATIENT


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SiteSessions]:
    folder = tmp_path_factory.mktemp("moving")
    written(folder)
    with closing(PageServer(folder)) as server:
        server.start()
        yield SiteSessions(server.port)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def painting(sites: SiteSessions) -> AsyncIterator[BrowserEnvironment]:
    browser = BrowserProcess(replace(QUICK, paint=True))
    env = BrowserEnvironment(browser, EmbeddedWorld(sites))
    try:
        yield env
    finally:
        await env.close()
        await browser.close()


async def settled(env: BrowserEnvironment, text: str) -> str:
    """Return what the page shows once it has not changed for a second."""
    unchanged = ends = time.monotonic()
    while time.monotonic() < min(unchanged + 1.0, ends + LATE_S):
        await asyncio.sleep(0.2)
        now = (await env.step(Action("wait"))).text
        if now != text:
            text, unchanged = now, time.monotonic()
    return text


@pytest.mark.parametrize("name", PAGES)
async def test_a_step_shows_what_a_browser_that_draws_comes_to(
    env: BrowserEnvironment, painting: BrowserEnvironment, name: str
) -> None:
    _, action = await opened(env, name)
    started = time.monotonic()
    shown = (await env.step(action)).text
    assert time.monotonic() - started < WAITED_S
    _, action = await opened(painting, name)
    drawn = await settled(painting, (await painting.step(action)).text)
    assert shown == drawn
