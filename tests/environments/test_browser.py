"""Real Chromium: that it sees what the browserless driver sees, and what only a browser can do."""

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.applications import Starlette

from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.browserless.environment import BrowserlessEnvironment
from environments.contract import check_environment
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from environments.environment import Environment
from environments.interface.feedback import sentence
from records.deadline import Deadline
from records.environment import Action, Observation
from records.episodes import Task
from records.failures import EpisodeFailed, FailureKind
from sites.app import create_app
from tests.environments.conftest import QUICK
from tests.environments.lab_site import LAB, SECRET, lab_task, serving, target

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest.fixture(scope="module")
def app() -> Starlette:
    from sites.registry import SITES

    return create_app(secret=SECRET, sites={**SITES, "lab": LAB})


@pytest.fixture(scope="module")
def sites(app: Starlette) -> Iterator[SiteEndpoint]:
    with serving(app) as port:
        yield SiteEndpoint(port, SECRET)


async def do(env: Environment, seen: Observation, kind: str, name: str, argument: str | None = None) -> Observation:
    return await env.step(Action(kind, argument, seen.find(name).element_id))


async def test_it_keeps_the_contract(browser: BrowserProcess, sites: SiteEndpoint) -> None:
    await check_environment(lambda: BrowserEnvironment(browser, EmbeddedWorld(sites)), lab_task())


def _random_action(rng: random.Random, seen: Observation) -> Action:
    if rng.random() < 0.12 or not seen.elements:
        return Action(rng.choice(["go_backward", "go_forward", "scroll_down"]))
    element = rng.choice(seen.elements)
    number = element.element_id
    if element.role in ("textbox", "searchbox"):
        text = rng.choice(["lamp", "3", "hello there", "", "2 & <b>", element.value, "a@b.example"])
        return Action(rng.choice(["type", "type", "search"]), text, number)
    if element.role == "select":
        return Action("select", rng.choice([*element.options, "no such option"]), number)
    return Action(rng.choice(["click", "click", "press_enter", "hover"]), None, number)


@pytest.mark.parametrize(
    ("site", "episodes", "trusted"), [("shop", 6, True), ("forum", 6, True), ("lab", 8, True), ("lab", 8, False)]
)
async def test_both_drivers_see_the_same_through_the_same_actions(
    browser: BrowserProcess, sites: SiteEndpoint, app: Starlette, site: str, episodes: int, trusted: bool
) -> None:
    env = BrowserEnvironment(browser, EmbeddedWorld(sites), replace(QUICK, trusted_input=trusted))
    twin, pages = BrowserlessEnvironment(app, QUICK), set()
    starts = ["/", "/form", "/post", "/table"] if site == "lab" else ["/"]
    for episode in range(episodes):
        rng, trail = random.Random(episode), []
        start = f"__{site.upper()}__{starts[episode % len(starts)]}"
        task = Task("walk", (site,), "wander", start, {}, site, require_login=bool(episode % 3))
        here, there = await twin.reset(task), await env.reset(task)
        for _ in range(20):
            if "/scripts" in here.url:
                break
            assert there == here, f"after {trail[-5:]} of episode {episode}"
            pages.add(here.url.partition("?")[0])
            trail.append(_random_action(rng, here))
            here, there = await twin.step(trail[-1]), await env.step(trail[-1])
    await twin.close()
    await env.close()
    assert len(pages) >= (4 if site == "lab" else 10)


async def test_both_drivers_send_the_same_form(env: BrowserEnvironment, app: Starlette) -> None:
    seen = []
    for driver in (env, BrowserlessEnvironment(app, QUICK)):
        page = await driver.reset(lab_task("/post"))
        for kind, name, argument in (
            ("type", "Say it", "two\nlines, more than twenty characters"),
            ("type", "Secret", "hunter2"),
            ("select", "Size", "LARGE"),
            ("click", "Gift wrap", None),
            ("click", "Cash", None),
            ("press_enter", "Who", None),
        ):
            page = await do(driver, page, kind, name, argument)
        seen.append(page)
    assert seen[0] == seen[1]
    assert "secret='hunter2'" in seen[0].page_text


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("Large", "Large"),
        ("medium  SIZE", "Medium size"),
        ("l", "Large"),  # a value comes before a part of a label
        ("dium", "Medium size"),
        (" LARG ", "Large"),
        ("a", ""),  # a part of two
        ("huge", ""),
        (" ", ""),
    ],
)
async def test_both_drivers_choose_the_same_option(
    env: BrowserEnvironment, app: Starlette, wanted: str, chosen: str
) -> None:
    seen = []
    for driver in (env, BrowserlessEnvironment(app, QUICK)):
        page = await driver.reset(lab_task("/form"))
        seen.append(await do(driver, page, "select", "Size", wanted))
    assert seen[0] == seen[1]
    assert seen[0].find("Size").value == (chosen or "Medium size")
    assert seen[0].refused is (chosen == "")


@pytest.mark.parametrize(
    ("button", "becomes"),
    [
        ("Now", "at once"),
        ("Soon", "after a while"),
        ("Fetch", "fetched"),
        ("Ask", "confirmed"),
        ("Draw", "drawn"),
        ("Push", "pushed"),
        ("Reach", "blocked"),
        ("Script", "brought along"),
        ("Module", "brought along"),
        ("A card", "card"),
    ],
)
async def test_scripts_are_waited_for(env: BrowserEnvironment, button: str, becomes: str) -> None:
    seen = await env.reset(lab_task("/scripts"))
    assert "nothing" in seen.page_text
    seen = await do(env, seen, "click", button)
    assert seen.page_text.endswith(becomes)
    if button == "Ask":
        assert seen.feedback == "The page showed a message and it was accepted: Really?"
        assert not seen.refused


async def test_a_page_change_by_script_is_followed(env: BrowserEnvironment) -> None:
    seen = await do(env, await env.reset(lab_task("/scripts")), "click", "Leave")
    assert seen.url == "__LAB__/new"
    seen = await env.step(Action("go_backward"))
    assert seen.url == "__LAB__/scripts"


async def test_a_page_that_answers_a_sent_form_may_open_a_tab_and_is_not_returned_to(env: BrowserEnvironment) -> None:
    seen = await do(env, await env.reset(lab_task("/subscribe")), "click", "Send")
    assert (seen.url, seen.feedback) == ("__LAB__/new", None)
    seen = await env.step(Action("switch_tab", "0"))
    assert "Thank you" in seen.page_text
    assert (await do(env, seen, "click", "Start")).url == "__LAB__/"
    seen = await env.step(Action("go_backward"))
    assert (seen.url, seen.feedback) == ("__LAB__/", sentence("resubmit"))


async def test_an_element_that_went_away_is_told(env: BrowserEnvironment) -> None:
    seen = await env.reset(lab_task("/scripts"))
    vanish = seen.find("Vanish")
    after = await do(env, seen, "click", "Vanish")
    assert all(e.name != "Vanish" for e in after.elements)
    env.pages.shown = replace(env.pages.shown, elements=seen.elements, targets=(*env.pages.shown.targets, 999))  # type: ignore[type-var]
    stale = await env.step(Action("click", element_id=len(seen.elements) - 1))
    assert stale.feedback is not None
    assert "no longer on the page" in stale.feedback
    assert stale.refused
    assert not after.refused
    assert vanish.name == "Vanish"


async def test_text_can_be_typed_into_editable_elements(env: BrowserEnvironment) -> None:
    seen = await do(env, await env.reset(lab_task("/scripts")), "type", "Note", "hello")
    assert "hello" in seen.page_text


async def test_an_episode_leaves_nothing_to_the_next(env: BrowserEnvironment) -> None:
    await env.reset(lab_task("/new"))
    page = env.slot.tab.page
    await page.evaluate("() => { document.cookie = 'a=1'; localStorage.a = 1; sessionStorage.a = 1; }")
    await env.step(Action("click", element_id=0))
    await env.reset(lab_task("/new"))
    assert env.slot.tab.page is page, "the slot should have been taken over"
    left = await page.evaluate("() => [document.cookie, localStorage.length, sessionStorage.length]")
    assert left == ["", 0, 0]
    assert (await env.step(Action("go_backward"))).feedback == "There is no earlier page to go back to."


async def test_the_evaluators_page_leaves_nothing_to_the_next_episode(env: BrowserEnvironment) -> None:
    kept = "document.defaultView.sessionStorage"
    looks = [
        target("__LAB__/", f"{kept}.length", {"exact_match": "0"}),
        target("__LAB__/new", f"{kept}.setItem('a', 1)", {"exact_match": ""}),
        target("__LAB__/", f"{kept}.length", {"exact_match": "0"}),
        target("__LAB__/new", f"{kept}.setItem('a', 1)", {"exact_match": ""}),
    ]
    task = lab_task("/new", eval_types=["program_html"], program_html=looks, reference_answers=None)
    for _ in range(2):
        await env.reset(task)
        verdict = await env.evaluate(None)
        assert verdict.outcome == 1.0, verdict.evidence


async def test_the_evaluators_page_does_nothing_once_the_verdict_is_there(env: BrowserEnvironment) -> None:
    ticking = "document.defaultView.setInterval(() => { window.ticks = (window.ticks ?? 0) + 1; }, 1) > 0"
    look = target("__LAB__/", ticking, {"exact_match": "true"})
    await env.reset(lab_task("/new", eval_types=["program_html"], program_html=[look], reference_answers=None))
    verdict = await env.evaluate(None)
    assert verdict.outcome == 1.0, verdict.evidence
    assert env.slot.judging is not None
    ticks = await env.slot.judging.read("window.ticks ?? 0")
    await asyncio.sleep(0.05)
    assert await env.slot.judging.read("window.ticks ?? 0") == ticks


async def test_a_page_reaches_its_own_episode_only(
    env: BrowserEnvironment, browser: BrowserProcess, sites: SiteEndpoint
) -> None:
    other = BrowserEnvironment(browser, EmbeddedWorld(sites))
    await other.reset(lab_task())
    await env.reset(lab_task())
    reach = "url => fetch(url, {mode: 'no-cors'}).then(() => 'reached', () => 'refused')"
    targets = [
        (f"{env.slot.addresses.bases['lab']}/new", "reached"),
        (f"{other.slot.addresses.bases['lab']}/new", "refused"),
        (f"http://lab.localhost:{sites.port}/", "refused"),
        (f"http://127.0.0.1:{sites.port}/_control/health", "refused"),
        (f"http://localhost:{sites.port}/", "refused"),
        ("http://example.com/", "refused"),
        ("http://93.184.215.14/", "refused"),
    ]
    for url, expected in targets:
        assert await env.slot.tab.page.evaluate(reach, url) == expected, url
    shop = f"http://shop.{env.world.token}.localhost:{sites.port}/"
    page = await env.slot.tab.page.context.new_page()
    reply = await page.goto(shop)
    assert reply is not None
    assert reply.status == 403, "the session has the task's sites only"
    await page.close()
    for url in ("file:///etc/passwd", shop, "data:text/html,<h1>x", f"{other.slot.addresses.bases['lab']}/"):
        await env.slot.tab.page.evaluate("url => { location.href = url; }", url)
        await asyncio.sleep(0.05)
        assert (await env.step(Action("wait"))).url == "__LAB__/"
    await other.close()


async def test_a_slow_page_is_shown_as_far_as_it_came_and_the_slot_is_not_reused(
    browser: BrowserProcess, sites: SiteEndpoint
) -> None:
    env = BrowserEnvironment(browser, EmbeddedWorld(sites), replace(QUICK, navigation_timeout_s=3.0))
    seen = await env.reset(lab_task("/new"))
    await env.slot.tab.page.evaluate("() => { document.querySelector('a').href = '/hang'; }")
    seen = await env.step(Action("click", element_id=0))
    assert seen.url == "__LAB__/new"
    assert seen.feedback is not None
    assert "took too long" in seen.feedback
    token = env.world.token
    await env.reset(lab_task("/new"))
    assert env.world.token != token
    await env.close()


@pytest.mark.parametrize(("start", "code"), [("/broken", "site_error"), ("/hang", "step_timeout")])
async def test_a_failing_site_is_an_infrastructure_failure(
    browser: BrowserProcess, sites: SiteEndpoint, start: str, code: str
) -> None:
    env = BrowserEnvironment(browser, EmbeddedWorld(sites), QUICK)
    with pytest.raises(EpisodeFailed) as caught:
        await env.reset(lab_task(start), deadline=Deadline(6.0))
    assert (caught.value.failure.kind, caught.value.failure.code.name) == (FailureKind.INFRA, code)
    assert (await env.reset(lab_task())).title == "Lab"
    await env.close()


async def test_a_site_that_is_down_is_an_infrastructure_failure(browser: BrowserProcess) -> None:
    env = BrowserEnvironment(browser, EmbeddedWorld(SiteEndpoint(1, "x")), QUICK)
    with pytest.raises(EpisodeFailed) as caught:
        await env.reset(lab_task(), deadline=Deadline(3.0))
    assert caught.value.failure.code.name == "site_unreachable"


async def test_a_killed_chromium_is_told_and_replaced(sites: SiteEndpoint) -> None:
    browser = BrowserProcess(QUICK)
    env = BrowserEnvironment(browser, EmbeddedWorld(sites))
    await env.reset(lab_task())
    started = browser.pids
    assert started
    for pid in started:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(EpisodeFailed) as caught:
        await env.step(Action("wait"))
    assert caught.value.failure.kind is FailureKind.INFRA
    assert caught.value.failure.code.name == "browser_crashed"
    assert (await env.reset(lab_task())).title == "Lab"
    assert browser.pids
    assert not set(browser.pids) & set(started)
    await env.close()
    await browser.close()
    assert browser.pids == []


async def test_who_asks_a_closed_browser_for_a_page_starts_no_other() -> None:
    """Two episodes meet a dead Chromium: one has the host replaced while the other opens its next context."""
    browser = BrowserProcess(QUICK)
    await browser.open_context("<-loopback>")
    for pid in browser.pids:
        os.kill(pid, signal.SIGKILL)
    closing, *asked = await asyncio.gather(
        browser.close(), browser.open_context("<-loopback>"), browser.draw("<p>"), return_exceptions=True
    )
    assert closing is None
    for answer in asked:
        assert isinstance(answer, EpisodeFailed), answer
        assert answer.failure.kind is FailureKind.INFRA
    assert browser.pids == []


async def test_a_browser_that_dies_while_it_opens_a_page_is_told_in_one_line() -> None:
    """Playwright's own message goes on with the browser's whole command line and log."""
    browser = BrowserProcess(QUICK)
    await browser.open_context("<-loopback>")
    pids = browser.pids
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    opening = asyncio.ensure_future(browser.open_context("<-loopback>"))
    await asyncio.sleep(0.3)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(EpisodeFailed, match="infra/browser_crashed: no context: .*closed") as told:
        await opening
    await browser.close()
    assert "\n" not in told.value.failure.detail


async def test_the_evaluators_run_locators_in_the_page(env: BrowserEnvironment) -> None:
    wanted = [
        target("last", "document.querySelector('#who').value", {"exact_match": "you"}),
        target("__LAB__/table", "[...document.querySelectorAll('td')].length", {"exact_match": "7"}),
        target("__LAB__/table", "document.nothing.of.it", {"exact_match": ""}),
    ]
    seen = await env.reset(lab_task("/form", eval_types=["program_html"], program_html=wanted, reference_answers=None))
    await do(env, seen, "type", "Who", "you")
    verdict = await env.evaluate(None)
    assert verdict.outcome == 1.0, verdict.evidence
    assert (await env.step(Action("wait"))).find("Who").value == "you"


@pytest.mark.parametrize("paint", [False, True])
async def test_screenshots_show_the_page(sites: SiteEndpoint, paint: bool) -> None:
    browser = BrowserProcess(replace(QUICK, paint=paint))
    env = BrowserEnvironment(browser, EmbeddedWorld(sites))
    assert await env.screenshot() is None
    seen = await env.reset(lab_task("/form"))
    before = await env.screenshot()
    await do(env, seen, "type", "Who", "somebody else")
    after = await env.screenshot()
    assert before is not None
    assert before.startswith(b"\x89PNG")
    assert before != after
    await env.close()
    await browser.close()


async def test_what_a_world_asks_aside_comes_with_the_look_and_from_the_page_that_is_shown(
    env: BrowserEnvironment,
) -> None:
    env.pages.aside = "[document.title, location.pathname]"
    seen = await env.reset(lab_task())
    assert env.pages.told_aside == ["Lab", "/"]
    seen = await env.step(Action("click", element_id=seen.find("Scripts").element_id))
    assert env.pages.told_aside == [seen.title, "/scripts"]
    env.pages.aside = "null"
