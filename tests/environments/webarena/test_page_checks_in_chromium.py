"""Locators, preparing scripts and page functions of task files, in a real browser."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from environments.addresses import EpisodeAddresses
from environments.browser.page_view import BrowserPageView
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.browser.tab import BrowserTab
from judges.rules import WEBARENA_LITE
from records.failures import EpisodeFailed
from tests.evaluation import evaluate

pytestmark = pytest.mark.browser

MEMBERS = "".join(
    f"<tr><td data-label='Account'><span class='gl-avatar-labeled-sublabel'>@{name}</span></td>"
    f"<td class='col-max-role'><span>{role}</span></td></tr>"
    for name, role in (("byteblaze", "Owner"), ("yjlou", "Guest"))
)
PAGE = f"""<!doctype html><title>Order</title><h1>Tea &amp; more</h1><table>{MEMBERS}</table>
<div data-index="actions"><b class="title" onclick="this.nextElementSibling.hidden = false">Actions</b>
<p hidden>Refund of 3</p></div><ul><li>one<li>two</ul><input id="count" value="12">
<div class="submission__inner"><a href="http://shop.test/a">a</a><img src="b.png"></div>"""
LINKS = (
    "[...document.querySelector('.submission__inner').querySelectorAll('[href],[src]')]"
    ".map(elem => elem.getAttribute('href') || elem.getAttribute('src')).join(' ')"
)


@pytest_asyncio.fixture
async def page() -> AsyncIterator[BrowserPageView]:
    settings = BrowserSettings()
    browser = BrowserProcess(settings)
    try:
        context = await browser.open_context("<-loopback>")
        tab = BrowserTab(await context.new_page(), settings)
        await tab.page.set_content(PAGE)
        yield BrowserPageView(tab, EpisodeAddresses({}), settings)
    finally:
        await browser.close()


def target(locator: str, required: dict, **more) -> dict:
    return {"url": "last", "locator": locator, "required_contents": required, **more}


async def outcome(page: BrowserPageView, *targets: dict) -> float:
    evaluation = {"eval_types": ["program_html"], "program_html": list(targets)}
    return (await evaluate(evaluation, answer=None, page=page, rules=WEBARENA_LITE)).outcome


async def test_what_task_files_ask_of_pages_is_answered_by_the_page(page):
    role = "func:gitlab_get_project_memeber_role(__page__, '{}')".format
    unfold = "document.querySelector('[data-index=\"actions\"]').querySelector('.title').click()"
    folded = "document.querySelector('p').outerText"
    nothing = {"exact_match": ""}
    hidden = target("document.querySelector('p').checkVisibility()", {"exact_match": "false"})
    for asked in (
        target("", {"must_include": ["tea", "count"], "note": "kept"}),
        target("document.querySelector('h1').outerText", {"exact_match": "tea & more"}),
        target("document.querySelector('#count').value", {"required_values": [">= 12"]}),
        target("document.querySelectorAll('li').length", {"exact_match": "2"}),
        target(LINKS, {"must_include": ["http://shop.test/a b.png"]}),
        target("lambda:() => document.title", {"exact_match": "Order"}),
        target("document.querySelector('#none').value", nothing),
        target("document.querySelector('#none')", nothing),
        target(role("yjlou"), {"exact_match": "Guest"}),
        target(role("byteblaze"), {"exact_match": "Owner"}),
        target(role("lou"), nothing),
        hidden,
        target(folded, {"must_include": ["refund of 3"]}, prep_actions=["document.nothing.click()", unfold]),
    ):
        assert await outcome(page, asked) == 1.0, asked
    assert await outcome(page, hidden) == 0.0, "the preparing script has unfolded it"
    assert await outcome(page, target("lambda:() => document.nothing", {"must_exclude": ["x"]})) == 0.0


async def test_a_locator_that_is_no_script_is_a_failure_of_the_task(page):
    with pytest.raises(EpisodeFailed, match="task/evaluation_invalid"):
        await outcome(page, target("document.querySelector(", {"exact_match": "a"}))
