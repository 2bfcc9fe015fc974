"""The frame: hosts, sessions, the control API, and what visitors write."""

from __future__ import annotations

import hashlib
import time

import pytest
from starlette.testclient import TestClient

from environments.browser.settings import BrowserSettings
from environments.browserless.html_page import HtmlPage
from environments.interface.observation import render
from sites.app import CONTROL_HEADER, SCRIPTS, create_app
from sites.registry import SITES
from sites.rendering import MAX_FIELD_CHARS, clean_text, page_templates

SECRET = "a secret for tests"
ADDRESS = {"label": "Beach", "street": "3 Elm Road", "city": "Bath", "postcode": "1234"}


@pytest.fixture(scope="module")
def app():
    return create_app(0, secret=SECRET, max_sessions=12)


def visit(app, host: str) -> TestClient:
    return TestClient(app, base_url=f"http://{host}")


def visitor(app, token: str, site: str = "shop") -> TestClient:
    app.state.sessions.reset(token, login=[site])
    return visit(app, f"{site}.{token}.localhost")


@pytest.mark.parametrize("site", SITES)
def test_a_site_answers_at_its_public_and_at_a_token_host(app, site):
    assert visit(app, f"{site}.localhost:8000").get("/").status_code == 200
    assert visitor(app, "abc", site).get("/").status_code == 200


@pytest.mark.parametrize("site", [name for name, site in SITES.items() if site.account])
def test_the_account_that_people_are_told_of_logs_in(app, site):
    user, password = SITES[site].account(app.state.sessions.data[site])
    app.state.sessions.reset("person")
    client = visit(app, f"{site}.person.localhost")
    names = dict.fromkeys(("username", "user", "email"), user)
    refused = client.post("/login", data={**names, "password": password + "x"})
    assert "wrong" in refused.text
    accepted = client.post("/login", data={**names, "password": password}, follow_redirects=False)
    assert accepted.status_code == 303


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost", "nowhere.localhost", "a.shop.abc.localhost", "shop.abc.example"]
)
def test_other_hosts_are_refused(app, host):
    answer = visit(app, host).get("/")
    assert answer.status_code == 404
    assert "http://shop.localhost" in answer.text


def test_an_unknown_token_is_gone_and_never_a_fresh_state(app):
    answer = visit(app, "shop.never-opened.localhost").get("/")
    assert answer.status_code == 410
    assert "reset it through the control API" in answer.text


def test_the_control_api_needs_the_secret(app):
    client = visit(app, "127.0.0.1")
    wrong = ({}, {CONTROL_HEADER: "guess"}, {CONTROL_HEADER: ""})
    for headers in wrong:
        assert client.get("/_control/health", headers=headers).status_code == 403
        assert client.post("/_control/sessions/taken", headers=headers).status_code == 403
        assert client.delete("/_control/sessions/public", headers=headers).status_code == 403
    assert visit(app, "shop.taken.localhost").get("/").status_code == 410


def test_the_control_api_opens_resets_and_drops_sessions(app):
    control, shop = visit(app, "127.0.0.1"), visit(app, "shop.ctl.localhost")
    headers = {CONTROL_HEADER: SECRET}
    assert control.post("/_control/sessions/ctl", json={"login": ["shop"]}, headers=headers).status_code == 200
    assert "Log out" in shop.get("/account").text
    shop.post("/addresses/new", data=ADDRESS)
    assert "Beach" in shop.get("/addresses").text
    control.post("/_control/sessions/ctl", json={"login": ["shop"]}, headers=headers)
    assert "Beach" not in shop.get("/addresses").text
    control.post("/_control/sessions/ctl", headers=headers)
    assert "Log in first" in shop.get("/addresses").text
    assert control.delete("/_control/sessions/ctl", headers=headers).json() == {"dropped": True}
    assert shop.get("/").status_code == 410


@pytest.mark.parametrize("body", [b"[]", b"not json", b'{"login": "shop"}', b'{"login": ["bank"]}', b"\xff"])
def test_the_control_api_says_what_is_wrong_with_a_request(app, body):
    answer = visit(app, "127.0.0.1").post("/_control/sessions/ctl", content=body, headers={CONTROL_HEADER: SECRET})
    assert answer.status_code == 400


@pytest.mark.parametrize("token", ["Upper", "-a", "a.b", "x" * 64])
def test_tokens_must_be_host_labels(app, token):
    answer = visit(app, "127.0.0.1").post(f"/_control/sessions/{token}", headers={CONTROL_HEADER: SECRET})
    assert answer.status_code == 400


def test_the_number_of_sessions_is_bounded():
    app = create_app(0, secret=SECRET, max_sessions=2)
    client, headers = visit(app, "127.0.0.1"), {CONTROL_HEADER: SECRET}
    assert client.post("/_control/sessions/one", headers=headers).status_code == 200
    full = client.post("/_control/sessions/two", headers=headers)
    assert (full.status_code, "2 sessions are open" in full.text) == (503, True)
    assert client.post("/_control/sessions/one", headers=headers).status_code == 200


def test_sessions_never_see_each_other(app):
    first, second = visitor(app, "first"), visitor(app, "second")
    product = next(iter(app.state.sessions.data["shop"].products.values()))
    first.post(f"/product/{product.slug}", data={"colour": product.colours[0], "size": (*product.sizes, "")[0]})
    first.post("/addresses/new", data=ADDRESS)
    first.post(f"/product/{product.slug}/review", data={"stars": "1 star", "title": "Secret", "text": "Mine"})
    assert product.name in first.get("/cart").text
    for page in ("/cart", "/addresses", f"/product/{product.slug}/reviews"):
        assert "Beach" not in second.get(page).text
        assert "Secret" not in second.get(page).text
    assert "Your cart is empty" in second.get("/cart").text


def test_a_reset_takes_milliseconds(app):
    visitor(app, "quick").get("/")
    started = time.process_time()
    for _ in range(100):
        app.state.sessions.reset("quick", login=list(SITES))
        for site in SITES:
            app.state.sessions.get("quick").state(site)
    assert (time.process_time() - started) / 100 < 0.005


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x>', "{{ 7*7 }}", "{% raw %}", "&lt;b&gt;"])
def test_what_visitors_write_is_shown_as_text(app, text):
    shop = visitor(app, "writer")
    page = shop.post("/addresses/new", data={**ADDRESS, "label": text}).text
    wrong = shop.post("/addresses/new", data={**ADDRESS, "street": text, "postcode": "x"}).text
    search = shop.get("/search", params={"q": text}).text
    for html in (page, wrong, search):
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert ">49<" not in html
    from lxml import html as parser

    document = parser.document_fromstring(page)
    assert text in [item.get("data-label") for item in document.cssselect(".item")]


def test_all_templates_escape_and_compile():
    environment = page_templates()
    assert environment.autoescape is True
    names = [name for name in environment.list_templates() if name.endswith(".html")]
    assert len(names) > 20
    for name in names:
        environment.get_template(name)
        source, _, _ = environment.loader.get_source(environment, name)
        assert "|safe" not in source.replace(" ", ""), name


def test_form_text_is_stripped_cleaned_and_bounded():
    assert clean_text("  a\x00\x1b[0m\r\nb ") == "a[0m\nb"
    assert len(clean_text("x" * 10_000)) == MAX_FIELD_CHARS


def test_errors_are_pages(app):
    shop = visitor(app, "lost")
    for path in ("/no-such-page", "/product/no-such", "/orders/1", "/category/no-such"):
        answer = shop.get(path)
        assert (answer.status_code, "Page not found" in answer.text) == (404, True)
    assert shop.get("/logout").status_code == 405


PAGES = {
    "shop": (("/", "/product/tall-glass-lamp", "/cart", "/addresses", "/category/lamps"), "04b4cfb1ca49ebc2"),
    "forum": (("/", "/f/books", "/forums", "/submit", "/messages"), "c052c8f8002cf7a6"),
}
"""Pages of one site, and a digest of what an agent reads of them in a session of that site alone."""


@pytest.mark.parametrize("site", PAGES)
def test_pages_of_a_session_with_one_site_are_what_the_shipped_policy_has_learned_to_read(app, site):
    app.state.sessions.reset("alone", login=[site], sites=[site])
    client, digest = visit(app, f"{site}.alone.localhost"), hashlib.sha256()
    paths, expected = PAGES[site]
    for path in paths:
        page = HtmlPage(client.get(path).text, f"http://{site}.alone.localhost{path}")
        digest.update(render(page.snapshot(), BrowserSettings()).text.encode())
    assert digest.hexdigest()[:16] == expected


def test_pages_of_a_session_with_several_sites_lead_to_the_others(app):
    app.state.sessions.reset("both", login=["shop"], sites=["shop", "forum"])
    shop = visit(app, "shop.both.localhost:8000").get("/").text
    assert shop.count('<nav class="sites"') == 1
    assert '<a href="http://forum.both.localhost:8000/">forum</a>' in shop
    forum = visit(app, "forum.both.localhost:8000").get("/").text
    assert '<a href="http://shop.both.localhost:8000/">shop</a>' in forum
    assert '">forum</a></nav>' not in forum
    public = visit(app, "shop.localhost").get("/").text
    assert '<a href="http://forum.localhost/">forum</a>' in public


def test_a_session_may_still_visit_its_own_sites_only(app):
    app.state.sessions.reset("one-only", sites=["shop"])
    assert visit(app, "forum.one-only.localhost").get("/").status_code == 403


def test_every_site_serves_the_script_that_its_pages_may_use(app):
    for site in SITES:
        script = visitor(app, "scripts", site).get(SCRIPTS)
        assert (script.status_code, script.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
