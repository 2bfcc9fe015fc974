"""What pages tell their developers goes nowhere, so that a flood of it stops nobody, and pages see no difference."""

from __future__ import annotations

import asyncio
import time

import pytest

from environments.browser.environment import BrowserEnvironment
from environments.embedded.world import EmbeddedWorld
from records.environment import Action
from tests.hostile.hostile_site import trap_task

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

FRAME = "const f = document.body.appendChild(document.createElement('iframe'));"
SAYING = {
    "lines": "for (const name of Object.keys(console)) try { console[name]('x', {}, document) } catch {}",
    "another console": "console.context?.('other').log('x')",
    "a borrowed function": "Reflect.apply(console.log, undefined, ['x'])",
    "an error": "setTimeout(() => { throw new Error('e') })",
    "a rejection": "Promise.reject(new Error('e'))",
    "a reported error": "reportError(new Error('e'))",
    "a frame": f"{FRAME} f.contentWindow.console.log('x')",
    "a frame of its own": f"{FRAME} f.srcdoc = '<script>console.log(1)</' + 'script>'",
    "a closed frame": f"{FRAME} f.sandbox = 'allow-scripts'; f.srcdoc = '<script>console.log(1)</' + 'script>'",
    "a tab": "open('about:blank').console.log('x')",
    "a worker": "new Worker(URL.createObjectURL(new Blob(['setTimeout(() => console.log(1), 500)'])))",
}
FLOOD = "for (let i = 0; i < 3000; i++)"
FLOODS = {
    "lines": f"setInterval(() => {{ {FLOOD} console.log('x'.repeat(1000), {{i}}) }}, 10)",
    "errors": f"setInterval(() => {{ {FLOOD} setTimeout(() => {{ throw new Error('e'.repeat(1000)) }}) }}, 10)",
    "rejections": f"setInterval(() => {{ {FLOOD} Promise.reject(new Error('e'.repeat(1000))) }}, 10)",
}


@pytest.mark.parametrize("what", SAYING)
async def test_nothing_is_sent_of_what_a_page_says(env: BrowserEnvironment, what: str) -> None:
    await env.reset(trap_task())
    heard: list[object] = []

    def hear(said: object) -> None:
        heard.append(said)

    context = env.slot.context
    context.on("console", hear)
    context.on("weberror", hear)
    await env.slot.tab.page.evaluate(f"() => {{ {SAYING[what]} }}")
    await asyncio.sleep(1.0 if what == "a worker" else 0.3)
    context.remove_listener("console", hear)
    context.remove_listener("weberror", hear)
    assert heard == []


@pytest.mark.parametrize("what", FLOODS)
async def test_a_flood_of_it_stops_no_other_slot(env: BrowserEnvironment, what: str) -> None:
    assert isinstance(env.world, EmbeddedWorld)
    other = BrowserEnvironment(env.slot.browser, env.world)
    await other.reset(trap_task())
    await env.reset(trap_task())
    await env.slot.tab.read(f"(() => {{ {FLOODS[what]} }})()")
    started = time.monotonic()
    for _ in range(10):
        await asyncio.sleep(0.2)
        await other.step(Action("wait"))
    assert time.monotonic() - started < 30.0  # one that goes through Playwright's driver stops the others for a minute
    await other.close()


async def test_a_page_finds_its_console_as_it_should_be(env: BrowserEnvironment) -> None:
    await env.reset(trap_task())
    looks = await env.slot.tab.read(
        "[console.log.name, String(console.log).includes('[native code]'), console.log('x') === undefined, "
        "Object.keys(console).length > 20, String(console), 'prototype' in console.log, "
        "console.createTask('t').run(() => 5), "
        "Object.values(Object.getOwnPropertyDescriptor(console, 'log')).filter(value => value === true).length].join()"
    )
    assert looks == "log,true,true,true,[object console],false,5,3"


async def test_errors_still_reach_the_pages_own_listeners(env: BrowserEnvironment) -> None:
    await env.reset(trap_task())
    page = env.slot.tab.page
    await page.evaluate(
        "() => { window.heard = []; onerror = text => { heard.push(text) }; "
        "addEventListener('unhandledrejection', e => heard.push(e.reason.message)); "
        "setTimeout(() => { throw new Error('thrown') }); Promise.reject(new Error('rejected')) }"
    )
    await asyncio.sleep(0.2)
    assert sorted(await page.evaluate("() => heard")) == ["Uncaught Error: thrown", "rejected"]
