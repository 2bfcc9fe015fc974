"""Pages that mean harm, in a real Chromium: each step ends, typed, and the next episode knows nothing of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page, Response
from playwright.async_api import Error as PlaywrightError

from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from environments.interface.feedback import sentence
from environments.interface.waymark_format import MAX_TEXT
from records.deadline import Deadline
from records.environment import Action, Observation
from records.failures import EpisodeFailed, FailureKind
from tests.hostile.conftest import SETTINGS
from tests.hostile.hostile_site import FLOODING, HANGING, TAMPERING, trap_task

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

ALWAYS_READ = {"attribute", "title", "option", "longoption", "value", "labelledby", "confirms", "prompts", "popups"}
"""Floods that are cut short and shown."""

UNHARMED = {"stringify", "stringify_number", "stringify_garbage", "stringify_list", "stringify_huge", "tojson",
            "tojson_strings", "waymark", "imitation", "listeners", "observer"}  # fmt: skip
"""Attempts on the page script that change nothing."""


async def ended(env: BrowserEnvironment, kind: str, name: str) -> None:
    """Be trapped where a step may well take all its time, which is then short."""
    await trapped(env, kind, name, step_s=4.0)


async def trapped(env: BrowserEnvironment, kind: str, name: str, step_s: float = 20.0) -> Observation | EpisodeFailed:
    """Open a trap, step into it, and look twice; return what the last step gave, or the typed failure."""
    try:
        seen = await env.reset(trap_task(f"/trap/{kind}/{name}/click"))
        seen = await env.step(Action("click", element_id=seen.find("Go").element_id), Deadline(step_s))
        return await env.step(Action("wait"), Deadline(step_s))
    except EpisodeFailed as error:
        failed = error
    assert failed.failure.kind is FailureKind.INFRA
    assert len(failed.failure.detail) < 1_000
    return failed


async def assert_nothing_is_left(env: BrowserEnvironment) -> None:
    """The next episode in the slot works, and finds an empty browser."""
    seen = await env.reset(trap_task())
    assert (seen.text, seen.url, seen.feedback) == ("@ Calm\n# Calm\nbutton Go 0", "__LAB__/calm", None)
    kept = "[document.cookie, localStorage.length, sessionStorage.length, window.name, history.length].join()"
    assert await env.slot.tab.read(kept) == ",0,0,,1"
    assert len(env.slot.context.pages) == 1 + (env.slot.judging is not None)
    seen = await env.step(Action("click", element_id=0))
    assert seen.page_text == "Calm Go done"


@pytest.mark.parametrize("name", ["load", "timer", "getter", "unload", "worker"])
async def test_a_page_that_hangs_costs_its_own_episode_only(env: BrowserEnvironment, name: str) -> None:
    assert name in HANGING
    other = BrowserEnvironment(env.slot.browser, EmbeddedWorld(env.world.sites))
    await other.reset(trap_task())
    trapping = asyncio.ensure_future(ended(env, "hang", name))
    for _ in range(5):
        assert "Calm" in (await other.step(Action("wait"))).page_text
    await trapping
    await other.close()
    await assert_nothing_is_left(env)


async def test_a_page_that_goes_elsewhere_while_it_is_left_is_left_again(
    env: BrowserEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    await env.reset(trap_task())
    goto, interrupted = Page.goto, list[str]()

    async def interrupting(page: Page, url: str, **options: Any) -> Response | None:
        if url == "about:blank" and len(interrupted) < 2:
            interrupted.append(url)
            raise PlaywrightError(
                f'Page.goto: Navigation to "{url}" is interrupted by another navigation to "/refresh"'
            )
        return await goto(page, url, **options)

    monkeypatch.setattr(Page, "goto", interrupting)
    await assert_nothing_is_left(env)
    assert len(interrupted) == 2


async def test_a_page_that_cannot_be_left_goes_with_its_context(
    env: BrowserEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    await env.reset(trap_task())
    goto, stormy, interrupted = Page.goto, env.slot.tab.page, list[str]()

    async def interrupting(page: Page, url: str, **options: Any) -> Response | None:
        if page is stormy:
            interrupted.append(url)
            raise PlaywrightError(
                f'Page.goto: Navigation to "{url}" is interrupted by another navigation to "/refresh"'
            )
        return await goto(page, url, **options)

    monkeypatch.setattr(Page, "goto", interrupting)
    await assert_nothing_is_left(env)
    assert interrupted
    assert stormy.is_closed()


@pytest.mark.parametrize("how", ["hangs", "dies"])
async def test_a_page_that_hangs_or_dies_while_it_is_left_goes_with_its_context(
    env: BrowserEnvironment, how: str
) -> None:
    await env.reset(trap_task())
    env.slot.settings = replace(env.slot.settings, close_timeout_s=2.0)
    tab, leave = env.slot.tab, env.slot.tab.leave

    async def leaving(origin: str) -> None:
        if how == "hangs":
            await tab.read("setTimeout(() => { for (;;) {} })")
        else:
            await tab._wire.send("Page.crash")
        await leave(origin)

    tab.leave = leaving  # type: ignore[method-assign]
    await assert_nothing_is_left(env)
    assert env.slot.tab is not tab


async def test_a_page_that_dies_while_its_context_closes_is_not_the_next_episodes_failure(
    env: BrowserEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    await env.reset(trap_task())
    env.slot.settings = replace(env.slot.settings, episodes_per_context=1)
    tab, close, told = env.slot.tab, BrowserContext.close, asyncio.Event()
    tab.page.on("crash", lambda _: told.set())

    async def closing(context: BrowserContext) -> None:
        crashing = asyncio.ensure_future(tab._wire.send("Page.crash"))
        await asyncio.wait_for(told.wait(), 60)
        await asyncio.sleep(0.1)
        crashing.cancel()
        await close(context)

    monkeypatch.setattr(BrowserContext, "close", closing)
    await assert_nothing_is_left(env)
    monkeypatch.undo()
    assert told.is_set()


async def test_a_page_that_hangs_while_it_loads_is_a_typed_failure(
    browser: BrowserProcess, sites: SiteEndpoint
) -> None:
    env = BrowserEnvironment(browser, EmbeddedWorld(sites), SETTINGS)
    with pytest.raises(EpisodeFailed) as caught:
        await env.reset(trap_task("/trap/hang/load/load"), deadline=Deadline(4.0))
    assert caught.value.failure.code.name == "step_timeout"
    await env.close()
    after = BrowserEnvironment(browser, EmbeddedWorld(sites))
    await assert_nothing_is_left(after)
    await after.close()


@pytest.mark.parametrize("name", sorted(ALWAYS_READ))
async def test_a_flood_is_cut_and_shown(env: BrowserEnvironment, name: str) -> None:
    seen = await trapped(env, "flood", name)
    assert isinstance(seen, Observation), seen
    assert len(seen.text) <= SETTINGS.max_observation_chars + 1_100
    assert len(seen.page_text) < 2_100_000
    assert len(seen.url) <= 4_000
    assert len(seen.feedback or "") < 8 * (MAX_TEXT + 60)
    assert sum(len(e.name) + len(e.value) for e in seen.elements) < 200_000
    await assert_nothing_is_left(env)


@pytest.mark.parametrize(
    "name",
    [
        "deep",
        "dialogs",
        "console",
        "jump",
        "refresh",
        "popuptimer",
        "popupchain",
        "crash",
        "downloads",
        "storage",
        "pushes",
        "hashes",
        "travels",
        "reloads",
        "unloads",
    ],
)
async def test_a_flood_ends_and_leaves_nothing(env: BrowserEnvironment, name: str) -> None:
    assert name in FLOODING
    await ended(env, "flood", name)
    await assert_nothing_is_left(env)


@pytest.mark.parametrize("name", ["elements", "texts", "deeplater"])
async def test_a_page_too_large_to_be_shown_whole_is_shown_in_part_and_the_agent_told(
    env: BrowserEnvironment, name: str
) -> None:
    seen = await trapped(env, "flood", name, step_s=120.0)
    assert isinstance(seen, Observation), seen
    assert seen.feedback == sentence("large")
    assert len(seen.text) <= SETTINGS.max_observation_chars + 1_100
    await assert_nothing_is_left(env)


async def test_a_look_at_a_page_ends_when_its_time_is_over(env: BrowserEnvironment) -> None:
    usual = env.slot.settings
    env.slot.settings = replace(usual, look_timeout_s=0.001)
    seen = await env.reset(trap_task("/trap/flood/elements/load"))
    assert seen.feedback == sentence("large")
    assert len(seen.elements) < 1_000
    env.slot.settings = replace(env.slot.settings, look_timeout_s=120.0)
    assert len((await env.step(Action("wait"))).elements) > 1_000
    env.slot.settings = usual
    await assert_nothing_is_left(env)


@pytest.mark.parametrize("name", sorted(UNHARMED))
async def test_what_a_page_replaces_after_the_script_changes_nothing(env: BrowserEnvironment, name: str) -> None:
    assert isinstance(await trapped(env, "tamper", name), Observation)
    await assert_nothing_is_left(env)


@pytest.mark.parametrize(
    "name",
    [
        "array",
        "setters",
        "defaults",
        "promise",
        "names",
        "styles",
        "title",
        "data",
        "clobber",
        "state",
        "feedback",
        "frozen",
        "everything",
        "popup",
        "popup_reply",
        "popup_tree",
        "popup_navigating",
    ],
)
async def test_a_page_that_breaks_the_script_is_a_typed_failure_or_shown(env: BrowserEnvironment, name: str) -> None:
    assert name in TAMPERING
    await ended(env, "tamper", name)
    await assert_nothing_is_left(env)


REPLIES = {
    "a number": "7",
    "nothing": "''",
    "a list": "'[]'",
    "an empty object": "'{}'",
    "a part": "'{\"navigating\": false}'",
    "too much": "'x'.repeat(9e6)",
    "no value": "undefined",
    "deep": "'['.repeat(5e4)",
    "a huge number": "'9'.repeat(1e5)",
    "no number": "'NaN'",
    "a long error": "(() => { throw new Error('e'.repeat(1e7)) })()",
    "a refusal": "Promise.reject(5)",
    "no text": "({toString() { throw 1 }})",
}


@pytest.mark.parametrize("what", REPLIES)
async def test_whatever_speaks_in_the_scripts_place_is_refused(env: BrowserEnvironment, what: str) -> None:
    await env.reset(trap_task())
    form = f"(() => {REPLIES[what]})()".replace("{", "{{").replace("}", "}}")
    with pytest.raises(EpisodeFailed) as caught:
        await asyncio.wait_for(env.slot.tab._call(form, None, {"aside": "null"}), 10)
    assert caught.value.failure.code.name in {"page_reply_malformed", "page_script_failed"}
    assert len(caught.value.failure.detail) < 1_000


async def test_an_episode_that_leaves_last_words_behind_tells_the_next_one_nothing(env: BrowserEnvironment) -> None:
    await env.reset(trap_task())
    page = env.slot.tab.page
    words = "window.name = document.cookie = localStorage.a = sessionStorage.a = 'a=last words'"
    await page.evaluate(f"() => {{ {words}; for (const type of ['pagehide', 'unload', 'visibilitychange'])"
                        f"addEventListener(type, () => {{ {words} }}) }}")  # fmt: skip
    await env.step(Action("wait"))
    await assert_nothing_is_left(env)
    assert env.slot.tab.page is page, "the slot should have been taken over"


async def test_tabs_that_nobody_knows_do_not_live_on(env: BrowserEnvironment) -> None:
    await env.reset(trap_task())
    env.slot.watching = False
    await env.slot.tab.page.evaluate("() => { open('/calm'); open('/calm') }")
    env.slot.watching = True
    await env.step(Action("wait"))
    await assert_nothing_is_left(env)
