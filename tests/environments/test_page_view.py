"""When evaluators read a page that they opened: once it has loaded, is quiet, and has drawn what they ask for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from environments.addresses import EpisodeAddresses, proxy_bypass
from environments.browser import page_view
from environments.browser.page_view import BrowserPageView
from environments.browser.process import BrowserProcess
from environments.browser.tab import BrowserTab
from records.deadline import Deadline
from tests.environments.conftest import QUICK
from tests.environments.lab_site import serving
from tests.evaluation import evaluate

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

FIELD = "document.querySelector('[name=\"price\"]').value"
LIST = "document.querySelector('ul').outerText"
DRAWN = "document.body.insertAdjacentHTML('beforeend', '<input name=price value=27.00>')"
UNFOLD = "document.querySelector('b').click()"

PAGES = {
    "/there": "<input name=price value=27.00><script>var a = 1</script>",
    "/late": f"<h1>Form</h1><script>setTimeout(() => {{ {DRAWN} }}, 1000)</script>",
    "/after-load": f"<script>onload = () => {{ {DRAWN} }}</script><img src='/slow'>",
    "/never": "<h1>Form</h1>",
    "/hanging": "<input name=price value=27.00><img src='/hang'>",
    "/onward": "<h1>One moment</h1><script>setTimeout(() => { location.href = '/there' }, 50)</script>",
    "/busy": "<input name=price value=27.00><script>setInterval(() => fetch('/slow'), 10)</script>",
    "/in-parts": """<ul></ul><script>
let n = 0;
const more = () => { document.querySelector('ul').innerHTML += `<li>part ${n += 1}`; if (n < 9) setTimeout(more, 20); };
onload = more;</script>""",
    "/folded": """<script>setTimeout(() => { document.body.innerHTML =
`<b onclick="this.nextElementSibling.value += 'x'">Unfold</b><input name=price>`; }, 1500)</script>""",
}


def _page(request: Request) -> Response:
    return HTMLResponse(f"<!doctype html><body>{PAGES[request.url.path]}", headers={"Cache-Control": "no-store"})


async def _slow(request: Request) -> Response:
    await asyncio.sleep(0.15)
    return HTMLResponse("", headers={"Cache-Control": "no-store"})


async def _hang(request: Request) -> Response:
    await asyncio.sleep(30)
    return HTMLResponse("")


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    app = Starlette(routes=[*(Route(path, _page) for path in PAGES), Route("/slow", _slow), Route("/hang", _hang)])
    with serving(app) as served:
        yield served


@pytest.fixture(scope="module")
def browser_settings():
    return QUICK


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: BrowserProcess, port: int) -> AsyncIterator[BrowserPageView]:
    base = f"http://127.0.0.1:{port}"
    context = await browser.open_context(proxy_bypass([base]))
    try:
        tab = BrowserTab(await context.new_page(), browser.settings)
        yield BrowserPageView(tab, EpisodeAddresses({"shop": base}), Deadline(60))
    finally:
        await context.close()


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break whoever reads a page again."""
    monkeypatch.setattr(page_view, "_AGAIN_S", None)


async def found(page: BrowserPageView, path: str, locator: str = FIELD) -> str:
    await page.open(f"__SHOP__{path}")
    return await page.content_text(locator)


async def test_a_field_that_a_script_draws_a_second_later_is_read(page):
    assert await found(page, "/late") == "27.00"


async def test_a_field_that_never_comes_is_an_empty_text_in_the_end(page):
    assert await found(page, "/never") == ""
    assert await found(page, "/never", "null") == ""


async def test_a_page_that_never_loads_is_read_all_the_same(page, monkeypatch):
    monkeypatch.setattr(page_view, "_LOAD_S", 0.5)
    assert await found(page, "/hanging") == "27.00"


@pytest.mark.parametrize("path", ["/there", "/after-load", "/onward"])
async def test_what_is_there_once_a_page_has_settled_is_read_once(page, read_once, path):
    assert await found(page, path) == "27.00"


async def test_a_page_that_never_becomes_quiet_is_read_all_the_same(page, read_once):
    assert await found(page, "/busy") == "27.00"


async def test_what_is_drawn_in_parts_is_read_when_it_is_whole(page, read_once, monkeypatch):
    monkeypatch.setattr(page_view, "_QUIET_S", 30.0)  # a busy machine draws nine parts in seconds
    assert await found(page, "/in-parts", LIST) == "\n".join(f"part {n}" for n in range(1, 10))


async def test_a_page_that_was_not_opened_is_read_as_it_is(page, read_once):
    assert await page.content_text(FIELD) == ""


async def test_no_time_is_spent_on_sites_that_draw_nothing_late(page, read_once):
    hurried = BrowserPageView(page._tab, page._addresses, Deadline(60), patience_s=0.0)
    assert await found(hurried, "/never") == ""


async def test_waiting_leaves_time_for_the_verdict(page):
    endless = BrowserPageView(page._tab, page._addresses, Deadline(12), patience_s=1000)
    assert await endless._deadline.run(found(endless, "/never")) == ""


async def test_a_preparing_script_waits_for_its_element_and_runs_once(page):
    target = {"url": "__SHOP__/folded", "locator": FIELD, "required_contents": {"exact_match": "x"}}
    evaluation = {"eval_types": ["program_html"], "program_html": [{**target, "prep_actions": [UNFOLD]}]}
    assert (await evaluate(evaluation, answer=None, page=page)).outcome == 1.0
