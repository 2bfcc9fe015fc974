"""Sessions over data of a seed of their own, in a layout of their own, and the order in which forms are sent."""

from __future__ import annotations

from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from environments.browserless.environment import BrowserlessEnvironment
from records.environment import Observation
from sites.app import CONTROL_HEADER, ORDER, create_app
from sites.layouts import laid_out
from tests.sites.chain_tasks import chains

PAGE = (
    "<!doctype html><html><head><title>A &amp; B</title></head><body>"
    '<header><nav><a href="/1">One</a> <a href="/2">Two</a> <a href="/3">Three</a></nav>'
    '<form><input name="q"></form></header>'
    '<form><p>First</p><div class="field"><label>Street</label><input name="s"></div>'
    '<div class="field"><label>City</label><input name="c" value="&lt;x&gt;"></div><button>Save</button></form>'
    "</body></html>"
)


def contents(page: Observation) -> list[tuple[str, str, str]]:
    return sorted((element.role, element.name, element.value or "") for element in page.elements)


async def shown(app, data_seed: int | None) -> Observation:
    """The shop's front page in a session over this data."""
    env = BrowserlessEnvironment(app)
    task = chains("train", 4)[0]
    seen = await env.reset(replace(task, sites=("shop", "forum"), start_url="__SHOP__/", data_seed=data_seed))
    await env.close()
    return seen


async def test_a_seed_gives_a_session_the_data_and_the_layout_of_that_seed(app):
    usual, seventh, eighth = [await shown(app, seed) for seed in (None, 7, 8)]
    assert contents(usual) == contents(seventh) == contents(eighth)
    assert len({page.text for page in (usual, seventh, eighth)}) == 3
    assert (await shown(app, 7)).text == seventh.text
    app.state.sessions.reset("own", data_seed=7)
    assert app.state.sessions.get("own").data["shop"].usual != app.state.sessions.data["shop"].usual
    assert app.state.sessions.get("own").data["shop"].usual == create_app(7).state.sessions.data["shop"].usual


async def test_sessions_of_one_seed_share_its_data_and_not_their_changes(app):
    sessions = app.state.sessions
    one, other = (sessions.reset(token, login=["shop"], data_seed=9) for token in ("one-9", "other-9"))
    assert one.data["shop"] is other.data["shop"]
    one.state("shop").send_message("changed")
    assert not other.state("shop").messages


def test_a_layout_moves_links_fields_and_parts_of_the_header_and_changes_nothing_else():
    found = {laid_out(PAGE, seed) for seed in range(20)}
    assert len(found) > 5
    for page in found:
        assert sorted(page.replace(">", "> ").split()) == sorted(laid_out(PAGE, 0).replace(">", "> ").split())
        assert page.index("First") < page.index('class="field"') < page.index("Save")
        assert "A &amp; B" in page
        assert 'value="&lt;x&gt;"' in page or 'value="<x>"' in page
    assert laid_out(PAGE, 3) == laid_out(PAGE, 3)


def test_a_menu_has_one_order_on_all_pages_of_a_seed():
    longer = PAGE.replace('<a href="/3">Three</a>', '<a href="/3">Three</a> <a href="/4">Four</a>')

    def order(page: str) -> list[str]:
        return sorted(("One", "Two", "Three"), key=page.index)

    for seed in range(10):
        assert order(laid_out(PAGE, seed)) == order(laid_out(longer, seed))


def test_the_control_api_opens_a_session_over_the_data_of_a_seed():
    app = create_app(0)
    client = TestClient(app, headers={CONTROL_HEADER: app.state.secret})
    assert client.post("/_control/sessions/seeded", json={"sites": ["wiki"], "data_seed": 3}).status_code == 200
    assert app.state.sessions.get("seeded").layout == 3
    refused = client.post("/_control/sessions/seeded", json={"sites": ["wiki"], "data_seed": "3"})
    assert (refused.status_code, '"data_seed": 7' in refused.text) == (400, True)


@pytest.mark.parametrize(
    ("sent", "asked", "answer"),
    [
        ("ab", "ab", "in order"),
        ("ba", "ab", "not in order"),
        ("bab", "ab", "in order"),
        ("aba", "ab", "not in order"),
        ("axb", "ab", "in order"),
        ("a", "ab", "not in order"),
        ("", "a", "not in order"),
    ],
)
def test_the_order_in_which_forms_were_last_sent_is_told(app, sent, asked, answer):
    app.state.sessions.reset("orderly", login=["wiki"], sites=["wiki", "shop"])
    client = TestClient(app, base_url="http://wiki.orderly.localhost")
    for letter in sent:
        client.post(f"/wiki/{letter}/put")
    page = client.get(ORDER, params=[("form", f"wiki:/wiki/{letter}/put") for letter in asked])
    assert page.text == f'<p id="order">{answer}</p>'
