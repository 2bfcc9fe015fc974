"""Chains in a real Chromium: experts solve them there, and see what they see without a browser."""

from __future__ import annotations

import pytest

from environments.browserless.environment import BrowserlessEnvironment
from tests.sites.chain_tasks import chains
from tests.sites.player import play_in

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest.mark.parametrize("split", ["train", "test_long", "test_atoms"])
async def test_experts_solve_chains_and_see_what_they_see_without_a_browser(env, app, split):
    twin = BrowserlessEnvironment(app)
    for task in chains(split, 4):
        played, twins = await play_in(env, task), await play_in(twin, task)
        assert played.outcome == 1.0, f"{task.intent}\n{played.shown[-1]}"
        assert played.milestones == twins.milestones
        assert (played.outcome, played.shown) == (twins.outcome, twins.shown)
    await twin.close()
