"""One Chromium for a module, and a slot in it for each test.

Who takes ``browser`` or ``env`` says what they are made of by the fixtures ``browser_settings`` and ``sites``, and runs
in the event loop of its module: ``pytest.mark.asyncio(loop_scope="module")``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(browser_settings: BrowserSettings) -> AsyncIterator[BrowserProcess]:
    started = BrowserProcess(browser_settings)
    yield started
    await started.close()


@pytest_asyncio.fixture(loop_scope="module")
async def env(browser: BrowserProcess, sites: SiteEndpoint) -> AsyncIterator[BrowserEnvironment]:
    made = BrowserEnvironment(browser, EmbeddedWorld(sites))
    yield made
    await made.close()
