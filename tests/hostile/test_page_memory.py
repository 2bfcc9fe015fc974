"""A page that eats memory is ended at the limit of the settings, and its episode alone fails, with a type."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
import pytest_asyncio

from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from records.environment import Action
from records.failures import EpisodeFailed, FailureKind
from tests.hostile.conftest import SETTINGS
from tests.hostile.hostile_site import trap_task

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

FRUGAL = replace(SETTINGS, page_memory_mb=300, wait_action_s=0.2)
"""The page stops at some 800 MB by itself, so that a test that fails hurts nobody."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def frugal() -> AsyncIterator[BrowserProcess]:
    started = BrowserProcess(FRUGAL)
    yield started
    await started.close()


async def play(env: BrowserEnvironment, actions: Sequence[Action]) -> None:
    for action in actions:
        await env.step(action)


async def test_a_page_that_eats_memory_is_ended_with_a_type_and_other_episodes_go_on(
    frugal: BrowserProcess, sites: SiteEndpoint
) -> None:
    eater, other = BrowserEnvironment(frugal, EmbeddedWorld(sites)), BrowserEnvironment(frugal, EmbeddedWorld(sites))
    await other.reset(trap_task())
    seen = await eater.reset(trap_task("/trap/flood/hoard/click"))
    with pytest.raises(EpisodeFailed) as caught:
        await play(eater, [Action("click", element_id=seen.find("Go").element_id), *[Action("wait")] * 200])
    assert (caught.value.failure.kind, caught.value.failure.code.name) == (FailureKind.INFRA, "page_memory")
    assert caught.value.failure.detail.endswith("browser.page_memory_mb is 300")
    assert "Calm" in (await other.step(Action("wait"))).page_text
    assert (await eater.reset(trap_task())).title == "Calm"
    assert frugal.why_page_ended() is None
    await eater.close()
    await other.close()
