"""Every expert solves its task through a real Chromium, and sees there what it sees without one."""

from __future__ import annotations

import pytest

from rollout_workers.browser import BrowserEnvironment, BrowserSession, SiteEndpoint
from rollout_workers.browserless import BrowserlessEnvironment
from sites.app import create_app
from sites.registry import SITES
from sites.server import SiteServer
from sites.tasks import generate
from tests.sites.player import play_in

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("site", SITES)
async def test_experts_solve_every_template_in_chromium(site):
    session = BrowserSession()
    with SiteServer() as server:
        browser = BrowserEnvironment(session, SiteEndpoint(server.port, server.secret))
        twin = BrowserlessEnvironment(create_app(0))
        try:
            for task in generate(5, (site,), per_template=1):
                played, twins = await play_in(browser, task), await play_in(twin, task)
                assert played.outcome == 1.0, f"{task.intent}\n{played.shown[-1]}"
                assert len(played.pages) == task.horizon
                assert (played.outcome, played.shown) == (twins.outcome, twins.shown)
        finally:
            await browser.close()
            await session.close()
