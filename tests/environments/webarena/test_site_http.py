"""State checks against a shop's own interface, on a fake shop served on loopback."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from environments.addresses import EpisodeAddresses
from environments.webarena.login.accounts import Account, Accounts, Secret
from environments.webarena.sites.http_client import SiteHttp, site_functions
from records import failure_codes as codes
from records.deadline import Deadline
from records.failures import EpisodeFailed, FailureKind
from tests.evaluation import evaluate

ACCOUNTS = Accounts({"shopping_admin": Account(Secret("boss"), Secret("pass-word"))})
REVIEWS = {
    "B0 1/2": [
        {"nickname": "First", "ratings": [{"rating_name": "Rating", "percent": 20}]},
        {"nickname": "Emma", "ratings": [{"rating_name": "Rating", "percent": 80}]},
    ],
    "NONE": [],
}


class Shop(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        right = given == {"username": "boss", "password": "pass-word"}
        right = right and self.path == "/rest/default/V1/integration/admin/token"
        self.answer(200, "t0ken") if right else self.answer(401, {"message": "no"})

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/slow":
            time.sleep(3.0)
        if parts.path == "/away":
            self.send_response(302)
            self.send_header("Location", "/rest/V1/orders")
            self.end_headers()
        elif parts.path == "/html":
            self.answer(200, None)
        elif self.headers["Authorization"] != "Bearer t0ken":
            self.answer(401, {"message": "no"})
        elif parts.path == "/rest/V1/orders":
            query = parse_qs(parts.query)
            newest = query["searchCriteria[sortOrders][0][direction]"] == ["DESC"]
            self.answer(200, {"items": self.server.orders[-1:] if newest else self.server.orders[:1]})
        else:
            sku = parts.path.removeprefix("/rest/V1/products/").removesuffix("/reviews")
            self.answer(200, REVIEWS[sku.replace("%20", " ").replace("%2F", "/")])

    def answer(self, status: int, content: object) -> None:
        body = b"<html>" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def shop():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    server.orders = [{"increment_id": "000000001"}, {"increment_id": "000000189"}]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.fixture
def addresses(shop):
    return EpisodeAddresses({"shopping": f"http://127.0.0.1:{shop.server_port}"})


class Page:
    """A page whose every address has its own text."""

    def __init__(self) -> None:
        self.at = "__SHOPPING__/"

    async def url(self) -> str:
        return self.at

    async def open(self, url: str) -> None:
        self.at = url

    async def content_text(self, locator: str) -> str:
        return f"content of {self.at}"


async def judged(target: dict, addresses: EpisodeAddresses, accounts: Accounts = ACCOUNTS):
    evaluation = {"eval_types": ["program_html"], "program_html": [target]}
    return await evaluate(
        evaluation, answer=None, page=Page(), functions=site_functions(addresses, accounts, Deadline())
    )


async def test_the_latest_order_is_the_page_that_is_judged(addresses):
    target = {
        "url": "func:shopping_get_latest_order_url()",
        "locator": "document.querySelector('h1').outerText",
        "required_contents": {"exact_match": "content of __SHOPPING__/sales/order/view/order_id/189/"},
    }
    assert (await judged(target, addresses)).outcome == 1.0


@pytest.mark.parametrize(
    ("locator", "wanted"),
    [
        ("func:shopping_get_sku_latest_review_author('B0 1/2')", "Emma"),
        ("func:shopping_get_sku_latest_review_rating('B0 1/2')", "80"),
        ("func:shopping_get_sku_latest_review_author('NONE')", ""),
        ("func:shopping_get_sku_latest_review_rating('NONE')", ""),
    ],
)
async def test_the_last_review_of_a_product(addresses, locator, wanted):
    target = {"url": "last", "locator": locator, "required_contents": {"exact_match": wanted}}
    assert (await judged(target, addresses)).outcome == 1.0
    target["required_contents"] = {"exact_match": "First"}
    assert (await judged(target, addresses)).outcome == 0.0


ORDER = {"url": "func:shopping_get_latest_order_url()", "locator": "", "required_contents": {"must_include": ["a"]}}


async def failure(work) -> tuple[FailureKind, str, str]:
    with pytest.raises(EpisodeFailed) as raised:
        await work
    return raised.value.failure.kind, raised.value.failure.code.name, raised.value.failure.detail


async def test_no_account_and_a_wrong_one_are_infrastructure_failures(addresses):
    kind, code, detail = await failure(judged(ORDER, addresses, Accounts({})))
    assert (kind, code) == (FailureKind.INFRA, "login_failed")
    assert "SHOPPING_ADMIN_USERNAME" in detail
    wrong = Accounts({"shopping_admin": Account(Secret("boss"), Secret("guess"))})
    kind, code, detail = await failure(judged(ORDER, addresses, wrong))
    assert (kind, code) == (FailureKind.INFRA, "site_api_refused")
    assert "guess" not in detail


async def test_a_shop_without_orders_gives_no_verdict(shop, addresses):
    shop.orders = []
    kind, code, detail = await failure(judged(ORDER, addresses))
    assert (kind, code) == (FailureKind.INFRA, "site_api_unexpected")
    assert "expected items.0.increment_id" in detail


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("__SHOPPING__/away", (FailureKind.INFRA, "site_api_refused")),
        ("__SHOPPING__/html", (FailureKind.INFRA, "site_api_unexpected")),
        ("__SHOPPING__/slow", (FailureKind.INFRA, "site_timeout")),
        ("http://127.0.0.1:9/", (FailureKind.TASK, "evaluation_url_refused")),
        ("file:///etc/hostname", (FailureKind.TASK, "evaluation_url_refused")),
        ("__GITLAB__/api", (FailureKind.TASK, "unknown_site")),
    ],
)
async def test_redirects_other_hosts_and_late_answers_are_failures(addresses, url, expected):
    assert (await failure(SiteHttp(addresses, Deadline(1.0, codes.JUDGE_DEADLINE)).json("GET", url)))[:2] == expected


async def test_a_shop_that_is_gone_is_unreachable():
    http = SiteHttp(EpisodeAddresses({"shopping": "http://127.0.0.1:9"}), Deadline())
    assert (await failure(http.json("GET", "__SHOPPING__/")))[:2] == (FailureKind.INFRA, "site_unreachable")
