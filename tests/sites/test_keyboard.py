"""Every site by keyboard alone, in Chromium: Tab reaches what an expert uses, Enter and the arrows do the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from playwright.async_api import Page

from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from records.environment import Action, Observation
from records.episodes import Task
from sites.experts import Intent, resolve
from sites.registry import SITES
from sites.tasks import expert_of, generate

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

MOST_TABS = 150
FLOWS = (
    "shop.buy_product",
    "forum.vote_and_reply",
    "code.create_issue",
    "map.replace_list",
    "wiki.read_later",
    "admin.comment_order",
    "shop.open_department",
    "shop.delete_address",
    "shop.show_suggested",
)
"""A main flow of each site, and what pages with scripts do: a menu, a question before a form, suggestions."""


class Hands:
    """Carries out an expert's intents with key presses only."""

    def __init__(self, env: BrowserEnvironment) -> None:
        self._env = env

    @property
    def page(self) -> Page:
        return self._env.slot.tab.page

    async def carry_out(self, intent: Intent, seen: Observation) -> Observation:
        """Reach the element by Tab, use it as its role is used, and look."""
        if intent.kind == "wait":
            return await self._env.step(Action("wait"))
        action = resolve(intent, seen)
        await self._reach(action)
        role = seen.elements[action.element_id or 0].role
        if action.kind in ("type", "search"):
            await self._write(action.argument or "")
        elif action.kind == "select":
            await self._choose(action.argument)
        elif role in ("radio", "checkbox"):
            await self.page.keyboard.press("Space")
        elif action.kind == "click":
            return await self._env.step(Action("press_enter"))
        return await self._env.step(Action("press_enter" if action.kind == "search" else "wait"))

    async def _reach(self, action: Action) -> None:
        assert self._env.pages.shown is not None
        await self.page.evaluate(
            "n => { window.wanted = window.__waymark.state.refs[n]; }", self._env.pages.shown.targets[action.element_id]
        )
        for _ in range(MOST_TABS):
            # Of a group of radio buttons Tab reaches one; the arrows go from there to the others.
            at = await self.page.evaluate(
                """() => document.activeElement === wanted ? "there"
                   : wanted.type === "radio" && document.activeElement.name === wanted.name ? "beside" : "" """
            )
            if at == "there":
                return
            await self.page.keyboard.press("ArrowDown" if at else "Tab")
        raise AssertionError(f"Tab does not reach {action.comment!r} on {self.page.url}")

    async def _write(self, text: str) -> None:
        if await self.page.evaluate("() => wanted.type") == "date":
            year, month, day = text.split("-")
            text = f"{month}{day}{year}"  # a date field takes its parts in the order in which it shows them
        else:
            await self.page.keyboard.press("Control+A")
        await self.page.keyboard.type(text)

    async def _choose(self, option: str | None) -> None:
        places = """text => [wanted.selectedIndex, [...wanted.options].findIndex(option => option.label === text)]"""
        at, wanted = await self.page.evaluate(places, option)
        for _ in range(abs(wanted - at)):
            await self.page.keyboard.press("ArrowDown" if wanted > at else "ArrowUp")


def a_task(template: str) -> Task:
    return next(task for task in generate(2, (*SITES, "scripted"), per_template=1) if task.template == template)


@pytest_asyncio.fixture(loop_scope="module")
async def env(browser: BrowserProcess, sites: SiteEndpoint) -> AsyncIterator[BrowserEnvironment]:
    env = BrowserEnvironment(browser, EmbeddedWorld(sites), replace(browser.settings, wait_action_s=0.1))
    yield env
    await env.close()


async def test_a_main_flow_of_every_site_works_by_keyboard_alone(env):
    assert {template.split(".")[0] for template in FLOWS} == set(SITES)
    for template in FLOWS:
        task = a_task(template)
        seen, hands, actor = await env.reset(task), Hands(env), expert_of(task)
        intent = next(actor)
        while intent.kind != "exit":
            seen = await hands.carry_out(intent, seen)
            intent = actor.send(seen)
        assert (await env.evaluate(intent.argument)).outcome == 1.0, task.intent


async def test_the_first_tab_offers_to_skip_what_comes_before_the_content(env):
    for site in SITES:
        seen = await env.reset(next(t for t in generate(2, (site,), per_template=1) if t.site == site))
        assert not any(element.name == "Skip to content" for element in seen.elements)
        page = Hands(env).page
        await page.keyboard.press("Tab")
        assert await page.evaluate("() => document.activeElement.textContent") == "Skip to content"
        address = page.url
        await page.keyboard.press("Enter")
        assert await page.evaluate("() => document.activeElement.localName") == "main"
        assert page.url == address


async def test_escape_closes_what_the_keyboard_has_opened(env):
    await env.reset(a_task("shop.open_department"))
    page = Hands(env).page
    shown = "() => !document.querySelector('[data-menu-list]').hidden"
    assert not await page.evaluate(shown)
    await page.get_by_role("button", name="Departments").focus()
    await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("Tab")
    assert await page.evaluate(shown)
    await page.keyboard.press("Escape")
    assert not await page.evaluate(shown)

    await page.goto(page.url.replace("/finder", "/address-book"))
    button = page.get_by_role("button", name="Delete").last
    await button.focus()
    await page.keyboard.press("Enter")
    assert await page.evaluate("() => document.activeElement.textContent") == "Cancel"
    await page.keyboard.press("Escape")
    assert await page.get_by_role("dialog").count() == 0
    assert await button.evaluate("element => element === document.activeElement"), "focus returns to where it was"
