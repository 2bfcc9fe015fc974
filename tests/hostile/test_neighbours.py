"""An honest episode beside a flood of whatever they share: no step of it fails, and the flood's failure is typed."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from records.environment import Action
from records.failures import EpisodeFailed
from tests.hostile.conftest import SETTINGS
from tests.hostile.hostile_site import trap_task

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

FRUGAL = replace(SETTINGS, page_memory_mb=300, wait_action_s=0.1)
STEPS = 8
ENOUGH_S = 120.0
"""A flood that must fail does within a second or two where nothing else runs, and much later on a busy machine."""


def in_workers(script: str) -> str:
    return f"window.kept = [1, 2].map(() => new Worker(URL.createObjectURL(new Blob([{script!r}]))))"


AGAIN = "setInterval(() => {{ {work} }}, {every})"
BLOBS = "self.kept = []; setInterval(() => { kept.push(new Blob([new Uint8Array(1 << 24).fill(1)])) }, 20)"
THOUSANDS = "for (let i = 0; i < 3000; i++)"
HARMLESS = {
    "its console": AGAIN.format(work=f"{THOUSANDS} console.log('x'.repeat(1000), {{i}})", every=10),
    "its workers' consoles": in_workers(AGAIN.format(work=f"{THOUSANDS} console.log('x'.repeat(1000))", every=10)),
    "its workers' errors": in_workers(AGAIN.format(work=f"{THOUSANDS} Promise.reject('x'.repeat(1000))", every=10)),
    "pictures by the GPU": (
        "window.kept = []; setInterval(() => { const gl = document.createElement('canvas').getContext('webgl2'); "
        "gl.bindTexture(gl.TEXTURE_2D, gl.createTexture()); gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, 4096, 4096); "
        "kept.push(gl); gl.finish() }, 20)"
    ),
    "its history": AGAIN.format(
        work="for (let i = 0; i < 20; i++) history.pushState({x: 'x'.repeat(1e5)}, '', '?' + Math.random())", every=1
    ),
}
"""Floods that come to nothing; where they keep the machine too busy, they fail by their name."""
DROWNING = {
    "its workers' consoles": in_workers("for (;;) console.log('x'.repeat(1000))"),
}
"""Floods of the driver by which all pages are reached; nothing can be said to a worker that never lets go."""
GROWING = {
    "its document": AGAIN.format(work="document.body.append('some words '.repeat(1e6))", every=10),
    "blobs": BLOBS,
    "blobs of its worker": in_workers(BLOBS),
}
"""Floods that would take the machine's memory."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def frugal() -> AsyncIterator[BrowserProcess]:
    started = BrowserProcess(FRUGAL)
    yield started
    await started.close()


async def flooded(
    browser: BrowserProcess, sites: SiteEndpoint, flood: str, least_s: float = 0.0
) -> tuple[list[str], EpisodeFailed | None]:
    """Play an honest episode beside a flood; return what it saw at each step, and how the flood's own failed."""
    eater, honest = BrowserEnvironment(browser, EmbeddedWorld(sites)), BrowserEnvironment(browser, EmbeddedWorld(sites))
    seen, failed = [], None
    try:
        await honest.reset(trap_task())
        await eater.reset(trap_task())
        await eater.slot.tab.read(f"(() => {{ {flood} }})()")
        for _ in range(STEPS):
            seen.append((await honest.step(Action("wait"))).title)
            await asyncio.sleep(0.2)
        ends = time.monotonic() + least_s
        try:
            for number in itertools.count():
                if number >= STEPS and time.monotonic() >= ends:
                    break
                await eater.step(Action("wait"))
        except EpisodeFailed as error:
            failed = error
        seen.append((await honest.step(Action("wait"))).title)
    finally:
        await eater.close()
        await honest.close()
    return seen, failed


@pytest.mark.parametrize("what", HARMLESS)
async def test_a_flood_of_what_nobody_keeps_hurts_no_episode(
    frugal: BrowserProcess, sites: SiteEndpoint, what: str
) -> None:
    seen, failed = await flooded(frugal, sites, HARMLESS[what])
    assert seen == ["Calm"] * (STEPS + 1)
    assert failed is None or failed.failure.code.name in ("page_memory", "page_flood")


@pytest.mark.parametrize("what", DROWNING)
async def test_a_flood_of_the_driver_fails_by_its_name_and_no_other_episode_does(
    frugal: BrowserProcess, sites: SiteEndpoint, what: str
) -> None:
    seen, failed = await flooded(frugal, sites, DROWNING[what], ENOUGH_S)
    assert seen == ["Calm"] * (STEPS + 1)
    assert failed is not None
    # Messages that nobody takes fill the memory of Chromium's own process too; which is seen first depends on the load.
    assert failed.failure.code.name in {"page_flood", "page_memory"}


@pytest.mark.parametrize("what", GROWING)
async def test_a_flood_that_would_take_the_memory_of_all_fails_by_its_name_and_no_other_episode_does(
    frugal: BrowserProcess, sites: SiteEndpoint, what: str
) -> None:
    seen, failed = await flooded(frugal, sites, GROWING[what], ENOUGH_S)
    assert seen == ["Calm"] * (STEPS + 1)
    assert failed is not None
    # On a busy machine it is in arrears with the page's own messages before its memory is seen.
    assert failed.failure.code.name in {"page_memory", "page_flood"}
