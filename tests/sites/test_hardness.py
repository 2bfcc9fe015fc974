"""What makes pages hard: faults of a session, and pages that work by scripts."""

from __future__ import annotations

import time

import pytest
from starlette.testclient import TestClient

from environments.browser.environment import BrowserEnvironment
from environments.browserless.environment import BrowserlessEnvironment
from environments.embedded.sessions import SiteEndpoint
from environments.embedded.world import EmbeddedWorld
from records.environment import Action
from records.failures import EpisodeFailed, FailureKind
from sites.app import CONTROL_HEADER, create_app
from sites.faults import FaultSettings
from sites.server import SiteServer
from sites.settings import SitesSettings
from sites.shop.finder_pages import WAREHOUSES, stock_by_warehouse
from sites.tasks import expert_of, generate, needs_browser, site_data
from tests.sites.player import Played, play_in

SECRET = "a secret for tests"
FROM_A_PAGE = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "document"}


@pytest.fixture(scope="module")
def app():
    return create_app(0, secret=SECRET)


def visitor(app, token: str, **faults: float) -> TestClient:
    app.state.sessions.reset(token, login=["shop"], sites=["shop"], faults=FaultSettings(**faults))
    return TestClient(app, base_url=f"http://shop.{token}.localhost")


def statuses(client: TestClient, count: int = 60) -> list[int]:
    return [client.get("/cart").status_code for _ in range(count)]


def test_errors_come_in_the_share_asked_for_and_are_the_same_for_a_token_and_seed(app):
    first = statuses(visitor(app, "errors", error_share=0.3, seed=1), 200)
    assert 0.2 <= sum(status >= 500 for status in first) / 200 <= 0.4
    assert set(first) == {200, 500, 503}
    assert statuses(visitor(app, "errors", error_share=0.3, seed=1), 200) == first
    assert statuses(visitor(app, "errors", error_share=0.3, seed=2), 200) != first
    assert statuses(visitor(app, "errors-again", error_share=0.3, seed=1), 200) != first


def test_a_request_that_fails_changes_nothing(app):
    client = visitor(app, "unchanged", error_share=1.0)
    assert client.post("/product/tall-glass-lamp", data={"colour": "Red"}).status_code >= 500
    assert app.state.sessions.get("unchanged").state("shop").cart == []


def test_a_slow_page_is_slow_and_then_whole(app):
    client = visitor(app, "slow", slow_share=1.0, slow_s=0.2)
    started = time.perf_counter()
    assert "Your cart is empty" in client.get("/cart").text
    assert time.perf_counter() - started >= 0.2


def test_a_log_in_that_runs_out_is_renewed_by_a_button_and_leads_back(app):
    client = visitor(app, "expiry", expiry_share=1.0)
    page = client.get("/category/lamps?sort=low", headers=FROM_A_PAGE)
    assert page.status_code == 401
    assert "Your session has expired" in page.text
    assert "/_frame/renew?next=%2Fcategory%2Flamps%3Fsort%3Dlow" in page.text
    assert client.get("/cart", headers=FROM_A_PAGE).status_code == 401
    assert "Your cart is empty" in client.get("/cart").text, "an address that is typed in, as evaluators do"
    back = client.post("/_frame/renew?next=%2Fcategory%2Flamps%3Fsort%3Dlow", headers=FROM_A_PAGE)
    assert back.url.path == "/category/lamps"
    sent = client.post("/cart", headers=FROM_A_PAGE)
    assert sent.status_code != 401, "a form is never what the log-in runs out at"


@pytest.mark.parametrize("target", ["//evil.example/", "https://evil.example/", "/\\evil.example", ""])
def test_renewing_a_log_in_never_leads_to_another_site(app, target):
    client = visitor(app, "renewal", expiry_share=0.5)
    answer = client.post("/_frame/renew", params={"next": target}, follow_redirects=False)
    assert answer.headers["location"] == "/"


def test_sessions_without_faults_have_none_and_the_server_may_give_some_to_all_but_people():
    app = create_app(0, secret=SECRET, faults=FaultSettings(error_share=1.0))
    app.state.sessions.reset("other", sites=["shop"])
    assert TestClient(app, base_url="http://shop.other.localhost").get("/").status_code >= 500
    assert TestClient(app, base_url="http://shop.localhost").get("/").status_code == 200
    app.state.sessions.reset("calm", sites=["shop"], faults=FaultSettings())
    assert TestClient(app, base_url="http://shop.calm.localhost").get("/").status_code == 200


def control(app, body: object) -> int:
    client = TestClient(app, base_url="http://127.0.0.1")
    return client.post("/_control/sessions/asked", json=body, headers={CONTROL_HEADER: SECRET}).status_code


def test_the_control_api_takes_faults_and_refuses_what_is_none(app):
    assert control(app, {"sites": ["shop"], "faults": {"error_share": 1, "seed": 3}}) == 200
    assert TestClient(app, base_url="http://shop.asked.localhost").get("/").status_code >= 500
    for wrong in ({"error_rate": 0.1}, {"error_share": "1"}, {"error_share": 2}, {"slow_s": 999}, [], {"seed": True}):
        assert control(app, {"sites": ["shop"], "faults": wrong}) == 400, wrong
    assert control(app, {"faults": {"error_share": 0.6, "slow_share": 0.6}}) == 400


@pytest.mark.parametrize("share", [0.02, 0.3])
async def test_a_server_error_is_the_sites_failure_in_every_episode_that_meets_it(share):
    """Whatever an expert would have scored, an episode in which the site fails has no verdict."""
    app = create_app(0, faults=FaultSettings(error_share=share, seed=5))
    outcomes: list[float | str] = []
    for task in generate(2, ("shop",), per_template=1)[:12]:
        env = BrowserlessEnvironment(app)
        try:
            outcomes.append((await play_in(env, task)).outcome)
        except EpisodeFailed as error:
            outcomes.append(f"{error.failure.code}")
        await env.close()
    assert set(outcomes) <= {1.0, "infra/site_error"}
    assert "infra/site_error" in outcomes or share < 0.1


def test_the_stock_of_all_warehouses_adds_up():
    for product in site_data("shop", 0).products.values():
        stock = stock_by_warehouse(product)
        assert tuple(stock) == WAREHOUSES
        assert product.stock == 0 or (sum(stock.values()) == product.stock and min(stock.values()) > 0)


def test_pages_with_scripts_make_sense_without_them(app):
    app.state.sessions.reset("plain", login=["shop"], sites=["shop"])
    client = TestClient(app, base_url="http://shop.plain.localhost")
    finder = client.get("/finder").text
    assert '<a href="/category/lamps">Lamps</a>' in finder
    assert "Choose a product from the list" in client.get("/finder", params={"name": "Lamp"}).text
    name = next(p.name for p in site_data("shop", 0).products.values() if p.stock)
    assert "Leeds: " in client.get("/finder", params={"name": name.upper()}).text
    assert client.get("/finder/suggest", params={"q": name.lower()}).json() == [name]
    assert client.get("/finder/suggest", params={"q": ""}).json() == []
    assert "Deleted Work" in client.post("/address-book/delete", data={"label": "Work"}).text
    assert "Work:" not in client.get("/addresses").text


async def test_a_task_that_needs_scripts_is_refused_without_a_browser(app):
    task = next(task for task in generate(0, ("shop", "scripted"), 1) if needs_browser(task))
    with pytest.raises(EpisodeFailed, match="task/needs_browser: the pages of shop.* need their scripts"):
        await BrowserlessEnvironment(app).reset(task)


def scripted_tasks(per_template: int):
    return [task for task in generate(4, ("shop", "scripted"), per_template) if needs_browser(task)]


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
async def test_experts_solve_every_template_on_pages_with_scripts_in_chromium(env):
    for task in scripted_tasks(1):
        played = await play_in(env, task)
        assert played.outcome == 1.0, task.intent
        assert len(played.actions) == task.horizon
        assert played.milestones[-1] == (True,) * 4, task.intent
        assert not any(played.feedback), played.feedback
        assert task.start_url == "__SHOP__/finder"


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
async def test_hovering_waiting_and_confirming_are_what_these_pages_ask_for(env):
    tasks = {task.template: task for task in scripted_tasks(1)}
    seen = await env.reset(tasks["shop.open_department"])
    assert not any(element.name == "Lamps" for element in seen.elements)
    menu = seen.find("Departments", "button").element_id
    assert (await env.step(Action("hover", element_id=menu))).find("Lamps", "link")

    async def stop_after(template: str, actions: int) -> Played:
        """Play all but the last actions of the expert, and look."""
        task, played = tasks[template], 0

        def cut():
            nonlocal played
            actor = expert_of(task)
            intent = next(actor)
            while played < actions:
                played += 1
                intent = actor.send((yield intent))
            yield type(intent)("exit", argument="done")

        return await play_in(env, task, cut())

    assert (await stop_after("shop.delete_address", 2)).outcome == 0.0
    assert (await stop_after("shop.delete_address", 3)).outcome == 1.0
    unanswered = await stop_after("shop.warehouse_stock", 3)
    assert unanswered.milestones[-1] == (True, True, True, False), "the stock comes later"


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
async def test_in_chromium_a_log_in_that_runs_out_hides_pages_from_the_agent_and_not_from_the_evaluator(browser):
    settings = SitesSettings(faults=FaultSettings(expiry_share=1.0))
    task = next(t for t in generate(1, ("shop",), 1) if t.template == "shop.add_to_cart")
    with SiteServer(settings) as server:
        env = BrowserEnvironment(browser, EmbeddedWorld(SiteEndpoint(server.port, server.secret)))
        try:
            seen = await env.reset(task)
            seen = await env.step(Action("click", element_id=seen.find("Lamps", "link").element_id))
            assert (seen.title, seen.feedback) == ("Session expired", None)
            renewed = await env.step(Action("click", element_id=seen.find("Log in again").element_id))
            assert renewed.url.startswith("__SHOP__/category/lamps")
            verdict = await env.evaluate("done")
            assert verdict.outcome == 0.0
            assert not any("expired" in line for line in verdict.evidence)
        finally:
            await env.close()


@pytest.mark.browser
@pytest.mark.asyncio(loop_scope="module")
async def test_in_chromium_a_server_error_is_the_sites_failure(browser):
    task = generate(1, ("shop",), 1)[0]
    with SiteServer(SitesSettings(faults=FaultSettings(error_share=1.0))) as server:
        env = BrowserEnvironment(browser, EmbeddedWorld(SiteEndpoint(server.port, server.secret)))
        try:
            with pytest.raises(EpisodeFailed) as failed:
                await env.reset(task)
            assert failed.value.failure.kind is FailureKind.INFRA
            assert failed.value.failure.code.name == "site_error"
        finally:
            await env.close()
