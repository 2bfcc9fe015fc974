"""Every expert solves its task through a real Chromium, and sees there what it sees without one."""

from __future__ import annotations

import pytest

from replay.records import Task
from rollout_workers.browser import BrowserEnvironment, BrowserSession, SiteEndpoint
from rollout_workers.browserless import BrowserlessEnvironment
from rollout_workers.environment import Environment
from sites.app import create_app
from sites.experts import resolve
from sites.registry import SITES
from sites.server import SiteServer
from sites.tasks import generate, template_named

pytestmark = pytest.mark.browser


async def play(env: Environment, task: Task) -> tuple[float, list[str]]:
    """Return the outcome and the addresses and texts of all pages on the expert's way."""
    expert = template_named(task.template).expert(task)
    seen, intent = await env.reset(task), next(expert)
    pages = [f"{seen.url}\n{seen.text}"]
    while intent.kind != "exit":
        seen = await env.step(resolve(intent, seen))
        pages.append(f"{seen.url}\n{seen.text}")
        intent = expert.send(seen)
    return (await env.evaluate(intent.argument)).outcome, pages


@pytest.mark.parametrize("site", SITES)
async def test_experts_solve_every_template_in_chromium(site):
    session = BrowserSession()
    with SiteServer() as server:
        browser = BrowserEnvironment(session, SiteEndpoint(server.port, server.secret))
        twin = BrowserlessEnvironment(create_app(0))
        try:
            for task in generate(5, (site,), per_template=1):
                outcome, pages = await play(browser, task)
                assert outcome == 1.0, f"{task.intent}\n{pages[-1]}"
                assert len(pages) == task.horizon
                assert (outcome, pages) == await play(twin, task)
        finally:
            await browser.close()
            await session.close()
