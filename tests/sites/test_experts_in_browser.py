"""Every expert solves its task through a real Chromium, and sees there what it sees without one."""

from __future__ import annotations

import pytest

from environments.browserless.environment import BrowserlessEnvironment
from sites.registry import SITES
from sites.tasks import generate
from tests.sites.player import play_in

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest.mark.parametrize("site", SITES)
async def test_experts_solve_every_template_in_chromium(env, app, site):
    twin = BrowserlessEnvironment(app)
    for task in generate(5, (site,), per_template=1):
        played, twins = await play_in(env, task), await play_in(twin, task)
        assert played.outcome == 1.0, f"{task.intent}\n{played.shown[-1]}"
        assert len(played.pages) == task.horizon
        assert (played.outcome, played.shown) == (twins.outcome, twins.shown)
    await twin.close()
