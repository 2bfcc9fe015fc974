"""Is what a page does by frames seen where Chromium draws none, and what does it cost?

On each of the ``moving_pages`` one step is taken by three browsers in turn: as Waymark plays, with frames drawn
(``browser.paint``), and, as the control, without frames and without what stands in for them. What the page comes to
where frames are drawn, however long that takes, is the truth. Steps are timed, observation included.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from statistics import median
from unittest.mock import patch

from benchmarks.moving_pages import PAGES, STILL, opened, written
from benchmarks.recording import Recording, met, option_parser
from environments.browser import process
from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.embedded.sessions import SiteSessions
from environments.embedded.world import EmbeddedWorld
from environments.miniwob.page_server import PageServer
from records.environment import Action

NAME = "frames"
OURS, DRAWN, CONTROL = "Waymark", "frames drawn", "neither frames nor what stands in for them"
_LATE_S = 5.0
_LOOK_S = 0.2
Seen = dict[str, list[tuple[str, float]]]


def main() -> None:
    """Play the pages, print how often each browser saw the truth, and write all times."""
    options = _options()
    recording = Recording(NAME, options.results)
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder))
        with closing(PageServer(Path(folder))) as server:
            server.start()
            truths, seen = asyncio.run(_play(SiteSessions(server.port), options.rounds))
    right = {
        arm: {name: all(text == truths[name] for text, _ in found[name]) for name in PAGES}
        for arm, found in seen.items()
    }
    took = {arm: {name: [1000 * s for _, s in found[name]] for name in PAGES} for arm, found in seen.items()}
    moving = {arm: median(ms for name in PAGES if name != STILL for ms in took[arm][name]) for arm in took}
    still = {arm: median(took[arm][STILL]) for arm in took}
    count = {arm: sum(right[arm].values()) for arm in right}
    recording.table(
        f"{len(PAGES)} pages, {options.rounds} steps on each",
        ["browser", "pages seen as they are", "ms, a page that moves", "ms, one that stands still"],
        [[arm, count[arm], moving[arm], still[arm]] for arm in seen],
    )
    for name in PAGES:
        if not right[OURS][name]:
            recording.note(f"seen otherwise: {name}")
    enough, quick = count[OURS] == len(PAGES) > count[CONTROL], moving[OURS] <= moving[DRAWN]
    verdicts = [
        f"Pages that read as where frames are drawn: {count[OURS]} of {len(PAGES)}, at the end of a step that is "
        f"drawn {count[DRAWN]}, by the control {count[CONTROL]}; target all, and fewer by the control {met(enough)}",
        f"A step on a page that moves takes {moving[OURS]:.0f} ms in the median, on one that stands still "
        f"{still[OURS]:.0f}; where frames are drawn {moving[DRAWN]:.0f} and {still[DRAWN]:.0f}, by the control "
        f"{moving[CONTROL]:.0f} and {still[CONTROL]:.0f}; target at most what drawing takes {met(quick)}",
    ]
    recording.write(
        {"rounds": options.rounds, "truths": truths, "right": right, "milliseconds": took, "verdicts": verdicts}
    )


def _options() -> argparse.Namespace:
    parser = option_parser(NAME, __doc__ or "")
    parser.add_argument("--rounds", type=int, default=5, help="steps on each page by each browser")
    return parser.parse_args()


async def _play(sites: SiteSessions, rounds: int) -> tuple[dict[str, str], dict[str, Seen]]:
    """Return what each page comes to, and by browser and page what each step showed and how many seconds it took."""
    truths: dict[str, str] = {}
    seen: dict[str, Seen] = {}
    async with AsyncExitStack() as stack:
        envs = {
            OURS: await stack.enter_async_context(_browser(sites, paint=False)),
            DRAWN: await stack.enter_async_context(_browser(sites, paint=True)),
            CONTROL: await stack.enter_async_context(_browser(sites, paint=False, stands_in=False)),
        }
        for arm, env in envs.items():
            await opened(env, STILL)  # starts the browser
            seen[arm] = {name: [] for name in PAGES}
        for number in range(rounds):
            for name in PAGES:
                for arm, env in envs.items():
                    _, action = await opened(env, name)
                    started = time.perf_counter()
                    text = (await env.step(action)).text
                    seen[arm][name].append((text, time.perf_counter() - started))
                    if number == 0 and arm == DRAWN:
                        truths[name] = await _in_the_end(env, text)
    return truths, seen


async def _in_the_end(env: BrowserEnvironment, text: str) -> str:
    """Return what the page shows once it has not changed for a while."""
    ends = unchanged = time.monotonic()
    while time.monotonic() < ends + _LATE_S and time.monotonic() < unchanged + _LATE_S / 3:
        await asyncio.sleep(_LOOK_S)
        now = (await env.step(Action("wait"))).text
        if now != text:
            text, unchanged = now, time.monotonic()
    return text


@asynccontextmanager
async def _browser(sites: SiteSessions, *, paint: bool, stands_in: bool = True) -> AsyncIterator[BrowserEnvironment]:
    browser = BrowserProcess(BrowserSettings(paint=paint, wait_action_s=0.01))
    env = BrowserEnvironment(browser, EmbeddedWorld(sites))
    try:
        with patch.object(process, "FRAMES_SCRIPT", process.FRAMES_SCRIPT if stands_in else ""):
            await opened(env, STILL)
        yield env
    finally:
        await env.close()
        await browser.close()


if __name__ == "__main__":
    main()
