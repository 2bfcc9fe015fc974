"""The WebRL lineage's page format: its rules on small pages, and in a real browser."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from lxml import html
from lxml.html import HtmlElement

from environments.browser.environment import BrowserEnvironment
from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.browserless.environment import BrowserlessEnvironment
from environments.contract import check_environment
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from environments.interface.observation import render_webrl
from environments.interface.snapshot import Node, RichView, Snapshot
from environments.interface.webrl_format import numbered_elements, simplify
from records.environment import Action
from tests.environments.lab_site import SECRET, lab_app, lab_task, serving

PAIRS = Path(__file__).parents[3] / "shared" / "html_samples"
"""Raw and simplified pages recorded by the lineage; they lie beside the repository, not in it."""


def view(text: str) -> RichView:
    """Build a view from HTML in which ``mark`` and ``data-bbox`` are written out."""

    def node(element: HtmlElement) -> Node:
        children: list[Node | str] = [element.text or ""]
        for child in element:
            children += [node(child), child.tail or ""]
        return Node(element.tag, dict(element.attrib), children)

    return RichView(node(html.fromstring(text.encode())), 100, 100)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        pytest.param(
            '<a mark="0" title="T" data-text="T" data-bbox="1,2,3,4">T</a>',
            '<a id="0" title="T" data-bbox="1,2,3,4"> T </a>',
            id="a value is shown once",
        ),
        pytest.param(
            '<div data-bbox="0,0,9,9"><p data-bbox="0,0,9,9"><b data-bbox="0,0,9,9">one</b></p></div>',
            '<b data-bbox="0,0,9,9"> one </b>',
            id="wrappers of one thing go",
        ),
        pytest.param(
            '<div data-bbox="0,0,9,9"><b data-bbox="0,0,9,9">one</b> tail <i data-bbox="0,0,9,9">two</i></div>',
            '<div data-bbox="0,0,9,9"> <b data-bbox="0,0,9,9"> one </b> <i data-bbox="0,0,9,9"> two </i> </div>',
            id="wrappers of several stay, text after a child does not",
        ),
        pytest.param(
            '<div data-bbox="0,0,9,9"><b data-bbox="0,101,9,9">below</b><b aria-hidden="true" data-bbox="0,0,1,1">x</b>'
            "<b>boxless</b><u data-bbox='0,100,9,9'>at the edge</u></div>",
            '<div data-bbox="0,0,9,9"> <u data-bbox="0,100,9,9"> at the edge </u> </div>',
            id="what is out of view goes",
        ),
        pytest.param(
            '<select mark="3" data-value="m" data-bbox="0,0,9,9"><option value="m">M</option></select>',
            '<select id="3" data-value="m" data-bbox="0,0,9,9"> <option value="m"> M </option> </select>',
            id="options of a shown list are shown",
        ),
        pytest.param(
            '<p data-bbox="0,0,9,9"><input type="hidden" data-bbox="0,0,1,1"><input mark="1" data-bbox="0,0,9,9"></p>',
            '<input id="1" data-bbox="0,0,9,9"> </input>',
            id="hidden types say nothing",
        ),
    ],
)
def test_the_rules(page: str, expected: str) -> None:
    assert simplify(view(page)) == expected


@pytest.mark.skipif(not PAIRS.is_dir(), reason=f"the lineage's recorded pages are not at {PAIRS}")
@pytest.mark.parametrize("number", [1, 2])
def test_recorded_pages_come_out_byte_for_byte(number: int) -> None:
    raw = (PAIRS / f"sample_simplified_html_{number}_raw.html").read_text(encoding="utf-8")
    for left_out in (r"<!--.*?-->", r"<style.*?</style>", r"<script.*?</script>"):
        raw = re.sub(left_out, "", raw, flags=re.DOTALL)
    expected = (PAIRS / f"sample_simplified_html_{number}_parsed.html").read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", raw).replace("data-label-id=", "mark=")
    assert simplify(replace(view(text), width=1280, height=720)) == expected


def test_numbered_elements_take_names_from_what_is_visible() -> None:
    rich = view('<div><a mark="0" data-text="raw">x</a><path mark="1" title="Icon"></path></div>')
    visible = Node("body", {}, [Node("a", {"href": "", "aria-label": "Named", "mark": "0"})])
    assert [(e.element_id, e.role, e.name) for e in numbered_elements(rich, visible)] == [
        (0, "link", "Named"),
        (1, "path", "Icon"),
    ]


def test_a_page_over_its_budget_is_cut_before_an_element_and_offers_what_it_shows() -> None:
    page = "".join(f'<a mark="{i}" data-text="link {i}" data-bbox="0,0,9,9">link {i}</a>' for i in range(20))
    rich = view(f"<div data-bbox='0,0,9,9'>{page}</div>")
    snapshot = Snapshot("http://x/", "", Node("body"), rich=rich)
    whole, cut = render_webrl(snapshot, 10_000), render_webrl(snapshot, 300)
    assert len(whole.elements) == 20
    assert whole.text.startswith(cut.text)
    assert len(cut.text) <= 300
    assert cut.text.endswith("</a>")
    assert [e.element_id for e in cut.elements] == list(range(cut.text.count("<a ")))
    assert cut.targets == tuple(range(len(cut.elements)))


async def test_without_a_browser_it_is_refused() -> None:
    env = BrowserlessEnvironment(lab_app(), BrowserSettings(observation_format="webrl"))
    with pytest.raises(ValueError, match="needs a real browser"):
        await env.reset(lab_task())


@pytest.mark.browser
async def test_a_real_browser_shows_numbers_and_boxes_and_acts_on_them() -> None:
    settings = BrowserSettings(observation_format="webrl", wait_action_s=0.01)
    browser = BrowserProcess(settings)
    with serving(lab_app()) as port:
        env = BrowserEnvironment(browser, EmbeddedWorld(SiteEndpoint(port, SECRET)))
        try:
            await check_environment(
                lambda: BrowserEnvironment(browser, EmbeddedWorld(SiteEndpoint(port, SECRET))), lab_task()
            )
            seen = await env.reset(lab_task("/form"))
            assert seen.text.startswith("<html data-bbox=") or seen.text.startswith("<body data-bbox=")
            who = seen.find("Who", "textbox")
            assert f'<input id="{who.element_id}" value="me" data-bbox="' in seen.text
            size = seen.find("Size", "select")
            assert size.options == ("Small", "Medium size", "Large")
            assert 'data-status="selected"' in seen.text
            seen = await env.step(Action("type", "you", who.element_id))
            assert 'data-value="you"' in seen.text
            seen = await env.step(Action("click", None, seen.find("Start", "link").element_id))
            assert seen.url == "__LAB__/"
        finally:
            await env.close()
            await browser.close()
