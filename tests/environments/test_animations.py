"""Transitions and animations where Chromium draws no frames: they end, are heard once each, and cost no waiting."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import quote

import pytest
import pytest_asyncio

from environments.browser import chromium
from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from records.environment import Action
from sites.app import create_app
from tests.environments.conftest import QUICK
from tests.environments.lab_site import SECRET, serving
from tests.hostile.hostile_site import TRAP, trap_task

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

PATIENT = replace(QUICK, settle_timeout_s=30.0)
"""A step that waits out its limit takes this long; one that does not ends before half of it, on a busy machine too."""
WAITED_S = 15.0
FRAME_S = 0.016

PAGE = """<!doctype html><title>Motion</title><style>
@keyframes shown {{ from {{ opacity: 0 }} to {{ opacity: 1 }} }} .spin {{ animation: shown 400ms infinite }} {style}
</style><button id=go>Go</button><div id=box>box</div><p id=out></p><script>
const say = text => {{ out.textContent += text + ' ' }};
for (const type of ['transitionend', 'animationend']) addEventListener(type, e => say((e.propertyName ??
  e.animationName) + e.pseudoElement + ' ' + e.elapsedTime));
getComputedStyle(box).opacity;
{script}
</script>"""

FADE = "#box { opacity: 0; transition: opacity 300ms } #box.on { opacity: 1 }"
ON = "go.onclick = () => { box.className = 'on' }"
ANIMATED = "const play = (timing, frames = {opacity: [0, 1]}) => box.animate(frames, timing);"

ENDING = {
    "a transition": (FADE, ON, "opacity 0.3"),
    "one with a delay": (FADE.replace("300ms", "300ms 900ms"), ON, "opacity 0.3"),
    "several, in their order": (
        "#box { opacity: 0; left: 0; transition: opacity 300ms, left 100ms } #box.on { opacity: 1; left: 9px }",
        ON,
        "left 0.1 opacity 0.3",
    ),
    "a pseudo-element's": (
        "#box::before { content: 'x'; opacity: 0; transition: opacity 200ms } #box.on::before { opacity: 1 }",
        f"getComputedStyle(box, '::before').opacity; {ON}",
        "opacity::before 0.2",
    ),
    "an animation": ("#box.on { animation: shown 200ms 2 }", ON, "shown 0.4"),
    "one that keeps its end": ("#box.on { animation: shown 400ms both }", ON, "shown 0.4"),
    "one that runs backwards": ("#box.on { animation: shown 400ms reverse forwards }", ON, "shown 0.4"),
    "one after the other": (
        "#box { opacity: 0; left: 0; transition: opacity 300ms, left 200ms } #box.on { opacity: 1 }",
        f"{ON}; box.ontransitionend = () => {{ box.style.left = '9px' }}",
        "opacity 0.3 left 0.2",
    ),
    "what its end brings": (
        FADE,
        f"{ON}; box.ontransitionend = () => {{ setTimeout(() => {{ box.remove(); say('gone') }}, 50) }}",
        "opacity 0.3 gone",
    ),
    "one that stops another": (
        "#box { opacity: 0; left: 0; transition: opacity 300ms, left 100ms } #box.on { opacity: 1; left: 9px }",
        f"{ON}; box.ontransitionend = () => {{ box.remove() }}",
        "left 0.1",
    ),
    "a script's": ("", f"{ANIMATED} go.onclick = () => {{ play(300).onfinish = e => say(e.type) }}", "finish"),
    "a script's that is heard": (
        "",
        f"{ANIMATED} go.onclick = () => {{ play({{duration: 300, fill: 'forwards'}}).addEventListener('finish', "
        "e => say(e.type + getComputedStyle(box).opacity)) }",
        "finish1",
    ),
    "a script's that is awaited": (
        "",
        f"{ANIMATED} go.onclick = async () => {{ await play({{duration: 300, fill: 'both'}}).finished; say('over') }}",
        "over",
    ),
    "a script's played back": (
        "",
        f"{ANIMATED} go.onclick = () => {{ const a = play(300); a.reverse(); a.onfinish = () => say('back') }}",
        "back",
    ),
    "a script's turned round": (
        "",
        f"{ANIMATED} const a = play({{duration: 300, fill: 'both'}}); go.onclick = () => {{ a.finish(); a.reverse(); "
        "a.onfinish = () => say('back') }",
        "back",
    ),
    "one in a shadow tree": (
        "",
        "const root = box.attachShadow({mode: 'closed'}); root.innerHTML = '<style>b { opacity: 0; transition: opacity "
        "200ms } b.on { opacity: 1 }</style><b>x</b>'; const b = root.querySelector('b'); getComputedStyle(b).opacity;"
        "b.ontransitionend = () => say('inside'); go.onclick = () => { b.className = 'on' }",
        "inside",
    ),
    "one in frames": (
        "",
        "const nest = (d, n) => { const f = d.body.appendChild(d.createElement('iframe')); "
        "return n ? nest(f.contentDocument, n - 1) : f.contentDocument }; const d = nest(document, 1); go.onclick = () "
        "=> { d.body.animate({opacity: [0, 1]}, 300).onfinish = () => say('deep') }",
        "deep",
    ),
}
UNDER_WAY = (FADE, "go.onclick = () => { box.className = 'on'; fetch('/slow') }", "opacity 0.3")
ANEW = (
    "#box.on { animation: shown 1ms }",
    "let ends = 0; box.onanimationend = () => { say(++ends); box.className = ''; box.offsetTop; box.className = 'on' };"
    + ON,
)
ENDLESS = {
    "endless": ("#box.on { animation: shown 300ms infinite }", ON, ""),
    "paused": ("#box.on { animation: shown 300ms paused }", ON, ""),
    "of no speed": ("", f"{ANIMATED} go.onclick = () => {{ const a = play(300); a.playbackRate = 0 }}", ""),
    "driven by scrolling": (
        "#box.on { animation: shown 1s linear; animation-timeline: scroll() } body { height: 5000px }",
        ON,
        "",
    ),
    "long": ("#box.on { animation: shown 60s }", ON, ""),
    "endless and awaited": (
        "",
        "box.onanimationstart = () => say('begun'); go.onclick = () => { box.className = 'spin' }",
        "begun",
    ),
}


@pytest.fixture(scope="module")
def browser_settings() -> BrowserSettings:
    return PATIENT


@pytest.fixture(scope="module")
def sites() -> Iterator[SiteEndpoint]:
    with serving(create_app(secret=SECRET, sites={"lab": TRAP})) as port:
        yield SiteEndpoint(port, SECRET)


async def shown(env: BrowserEnvironment, style: str, script: str) -> tuple[str, float]:
    """Press ``Go``; return what the page said, and the seconds that the step took."""
    seen = await env.reset(trap_task(f"/html?html={quote(PAGE.format(style=style, script=script))}"))
    started = time.monotonic()
    await env.step(Action("click", element_id=seen.find("Go").element_id))
    return await said(env), time.monotonic() - started


@asynccontextmanager
async def a_slot(sites: SiteEndpoint, settings: BrowserSettings) -> AsyncIterator[BrowserEnvironment]:
    """A slot in a browser of its own."""
    browser = BrowserProcess(settings)
    env = BrowserEnvironment(browser, EmbeddedWorld(sites))
    try:
        yield env
    finally:
        await env.close()
        await browser.close()


@pytest_asyncio.fixture(loop_scope="module")
async def quick(sites: SiteEndpoint) -> AsyncIterator[BrowserEnvironment]:
    """A slot whose steps wait two seconds at most."""
    async with a_slot(sites, QUICK) as made:
        yield made


async def said(env: BrowserEnvironment) -> str:
    return str(await env.slot.tab.read("out.textContent.trim()"))


@pytest.mark.parametrize("what", ENDING)
async def test_what_has_an_end_ends_within_the_step_and_is_heard_once(env: BrowserEnvironment, what: str) -> None:
    style, script, expected = ENDING[what]
    heard, took_s = await shown(env, style, script)
    assert heard == expected
    assert took_s < WAITED_S
    await env.step(Action("wait"))
    await asyncio.sleep(0.5)
    assert await said(env) == expected


@pytest.mark.parametrize("what", ENDLESS)
async def test_what_has_no_end_soon_keeps_no_step_waiting(env: BrowserEnvironment, what: str) -> None:
    style, script, expected = ENDLESS[what]
    heard, took_s = await shown(env, style, script)
    assert heard == expected
    assert took_s < WAITED_S


async def test_what_ends_is_heard_where_the_step_waits_for_something_else(quick: BrowserEnvironment) -> None:
    style, script, expected = UNDER_WAY
    heard, _ = await shown(quick, style, script)
    assert heard == expected


async def test_what_is_started_anew_each_time_ends_no_oftener_than_frames_come(quick: BrowserEnvironment) -> None:
    style, script = ANEW
    heard, _ = await shown(quick, style, script)
    ends = [int(n) for n in re.findall(r"(?<!\S)\d+(?= shown)", heard)]
    assert ends == list(range(1, len(ends) + 1))
    assert 1 < len(ends) <= QUICK.settle_timeout_s / FRAME_S + 1


async def test_what_takes_long_ends_once_its_time_has_passed(quick: BrowserEnvironment) -> None:
    """By the page's own clock: in a step from whose beginning on it has less than a step's time left."""
    script = (
        "let began; go.onclick = () => { began = performance.now(); box.className = 'on' }; box.onanimationend = () => "
        f"say(performance.now() - began >= {3000 - 1000 * QUICK.settle_timeout_s})"
    )
    heard, _ = await shown(quick, "#box.on { animation: shown 3s }", script)
    async with asyncio.timeout(60):
        while not heard:
            await quick.step(Action("wait"))
            heard = await said(quick)
    assert heard == "true shown 3"


@pytest.mark.parametrize(
    "script",
    [
        "const ask = () => requestIdleCallback(idle => idle.timeRemaining() > 0 ? say('true') : ask());"
        "go.onclick = ask",
        "go.onclick = () => { const change = () => say('true'); "
        "document.startViewTransition ? document.startViewTransition(change) : change() }",
    ],
)
async def test_what_waits_for_the_browsers_leisure_or_a_view_transition_comes(
    env: BrowserEnvironment, script: str
) -> None:
    heard, took_s = await shown(env, "", script)
    assert heard == "true"
    assert took_s < WAITED_S


async def test_where_frames_are_drawn_all_the_same_each_event_is_heard_once(
    sites: SiteEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = chromium.launch_flags
    monkeypatch.setattr(chromium, "launch_flags", lambda mark, paint, *rest, **more: flags(mark, True, *rest, **more))
    async with a_slot(sites, QUICK) as env:
        for what in ("a transition", "an animation", "a pseudo-element's", "a script's", "one with a delay"):
            style, script, expected = ENDING[what]
            await shown(env, style, script)
            await asyncio.sleep(1.5)
            assert await said(env) == expected, what


async def test_a_browser_that_draws_waits_for_what_ends_soon(sites: SiteEndpoint) -> None:
    async with a_slot(sites, replace(QUICK, paint=True)) as env:
        style, script, expected = ENDING["a transition"]
        heard, took_s = await shown(env, style, script)
        assert heard == expected
        assert took_s > 0.3
