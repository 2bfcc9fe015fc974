"""Log-ins that run out in the middle of an episode, in Chromium: who logs in again has lost nothing."""

from __future__ import annotations

import pytest

from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from records.episodes import Task
from sites.experts import Expert, Intent
from sites.faults import FaultSettings
from sites.registry import SITES
from sites.server import SiteServer
from sites.settings import SitesSettings
from sites.tasks import expert_of, generate
from tests.sites.player import play_in

pytestmark = pytest.mark.browser

RENEW = "Log in again"
EVERY_PAGE = SitesSettings(start_timeout_s=120.0, faults=FaultSettings(expiry_share=1.0))
"""On each page that is opened from a page the log-in has run out; once renewed it lasts for that page."""


def who_logs_in_again(task: Task) -> Expert:
    """The task's expert, who sees the pages as they are after logging in again."""
    actor = expert_of(task)
    intent = next(actor)
    while True:
        seen = yield intent
        while seen.title == "Session expired":
            seen = yield Intent("click", RENEW, "button")
        intent = actor.send(seen)


def changing_task(site: str) -> Task:
    tasks = generate(4, (site,), per_template=1)
    return next(t for t in tasks if t.evaluation["eval_types"] == ["program_html"] and t.horizon >= 5)


async def test_a_task_of_every_site_is_solved_by_who_logs_in_again_on_every_page():
    browser = BrowserProcess(BrowserSettings(launch_timeout_s=120.0))
    with SiteServer(EVERY_PAGE) as server:
        env = BrowserEnvironment(browser, EmbeddedWorld(SiteEndpoint(server.port, server.secret)))
        try:
            for task in map(changing_task, SITES):
                played = await play_in(env, task, who_logs_in_again(task))
                renewed = played.actions.count(f"click {RENEW}")
                assert renewed >= 2, f"{task.intent}: {played.actions}"
                assert played.outcome == 1.0, f"{task.intent}: {played.actions}"
                assert len(played.actions) == task.horizon + renewed
        finally:
            await env.close()
            await browser.close()
