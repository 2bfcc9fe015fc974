"""Logging in through a form in real Chromium, and saying what went wrong without saying the password."""

import logging
import re
import socket
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from urllib.parse import quote, quote_plus

import pytest
import pytest_asyncio
from starlette.responses import HTMLResponse

from environments.browser.process import BrowserProcess
from environments.browser.settings import BrowserSettings
from environments.webarena.login.accounts import Account, Secret
from environments.webarena.login.form_login import FormLogin
from environments.webarena.login.forms import LOGIN_FORMS, LoginForm
from environments.webarena.login.sessions import LoginSessions
from records.failures import EpisodeFailed, Failure, FailureKind
from tests.environments.lab_site import serving
from tests.environments.webarena.fake_sites import ACCOUNT, COOKIE, FORM, PASSWORD, USERNAME, FakeSite
from tests.environments.webarena.login_shapes import SHAPES, Shape, ShapedSite

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

ANYWHERE = "EXCLUDE 127.0.0.1"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[BrowserProcess]:
    started = BrowserProcess(BrowserSettings(), f"MAP * ~NOTFOUND, {ANYWHERE}")
    yield started
    await started.close()


@pytest.fixture
def site() -> FakeSite:
    return FakeSite("Shop")


@pytest.fixture
def base(site: FakeSite) -> Iterator[str]:
    with serving(site.app()) as port:
        yield f"http://127.0.0.1:{port}"


async def failure_of(
    browser: BrowserProcess, base: str, form: LoginForm = FORM, account: Account = ACCOUNT, timeout_s: float = 10.0
) -> Failure:
    began = time.monotonic()
    with pytest.raises(EpisodeFailed) as caught:
        await FormLogin(browser, timeout_s=timeout_s).log_in(base, form, account)
    assert time.monotonic() - began < timeout_s + 60
    failure = caught.value.failure
    assert (failure.kind, failure.code.name) == (FailureKind.INFRA, "login_failed")
    shown = "".join(traceback.format_exception(caught.value))
    for text in (failure.detail, str(caught.value), repr(caught.value), shown):
        for secret in (account.password.reveal(), account.username.reveal()):
            assert not any(written in text for written in (secret, quote(secret), quote_plus(secret)))
    return failure


async def test_the_form_is_filled_in_and_the_session_cookie_is_kept(
    browser: BrowserProcess, site: FakeSite, base: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        login = await FormLogin(browser, timeout_s=120).log_in(base, FORM, ACCOUNT)
    (cookie,) = login.state["cookies"]
    assert site.sessions[cookie["value"]] == "agent"
    assert (cookie["name"], login.expires_at) == (COOKIE, None)
    assert PASSWORD not in caplog.text
    assert USERNAME not in caplog.text
    assert cookie["value"] not in repr(login), "a session is as good as a password"


@pytest.mark.parametrize("name", sorted(SHAPES))
async def test_a_form_of_any_shape_is_found_by_its_password_field(browser: BrowserProcess, name: str) -> None:
    shape = SHAPES[name]
    site = ShapedSite(shape, LOGIN_FORMS.get(name, FORM))
    with serving(site.app()) as port:
        base = f"http://127.0.0.1:{port}" + ("/admin" if name == "shopping_admin" else "")
        login = await FormLogin(browser, timeout_s=150).log_in(base, site.form, ACCOUNT)
    assert [cookie["value"] for cookie in login.state["cookies"]] == ["s1"]
    sent = {key: value for entry in site.received for key, value in entry.items()}
    assert (sent[shape.names[0]], sent[shape.names[1]]) == (USERNAME, PASSWORD)
    assert not {"dummy", "q", "email", "new_user[email]"} & {key for key, value in sent.items() if value}


@pytest.mark.parametrize(
    ("after", "complaint", "wait_s"),
    [
        (
            HTMLResponse("<title>Code</title>Enter it."),
            "the form was sent, and at /login \\('Code'\\) there is no way to log out",
            6.0,
        ),
        (HTMLResponse("broken", 502), "the sent form was answered with 502", 60.0),
        (HTMLResponse("<p class=refused>Locked"), "refused the user name or the password", 60.0),
    ],
)
async def test_a_right_password_that_does_not_log_in_is_told(
    browser: BrowserProcess, after: HTMLResponse, complaint: str, wait_s: float
) -> None:
    site = ShapedSite(SHAPES["no button"], FORM, after)
    with serving(site.app()) as port:
        failure = await failure_of(browser, f"http://127.0.0.1:{port}", timeout_s=wait_s)
    assert re.search(complaint, failure.detail), failure.detail
    assert f"127.0.0.1:{port}" in failure.detail, "the host is named"


async def test_the_second_of_two_steps_that_refuses_is_told(browser: BrowserProcess) -> None:
    site = ShapedSite(SHAPES["two pages"], FORM)
    with serving(site.app()) as port:
        wrong = Account(Secret(USERNAME), Secret("wr0ng & long"))
        failure = await failure_of(browser, f"http://127.0.0.1:{port}", account=wrong, timeout_s=60.0)
    assert "refused the user name or the password" in failure.detail


async def test_wrong_credentials_are_told_at_once(browser: BrowserProcess, base: str) -> None:
    wrong = Account(Secret(USERNAME), Secret("wr0ng & long"))
    failure = await failure_of(browser, base, account=wrong, timeout_s=60)
    assert "refused the user name or the password" in failure.detail


async def test_a_page_without_a_form_is_told_and_nothing_is_typed(
    browser: BrowserProcess, site: FakeSite, base: str
) -> None:
    failure = await failure_of(browser, base, replace(FORM, path="/page/1"), timeout_s=6)
    assert "found no form with a password field at /page/1 ('Shop')" in failure.detail


async def test_a_field_that_goes_away_while_it_is_typed_into_is_told_without_the_text(browser: BrowserProcess) -> None:
    """Playwright's own message lists what it tried to type."""
    page = '<form method="post"><input name="username"><input type="password" onfocus="this.disabled = true"></form>'
    with serving(ShapedSite(Shape("/login", page, ""), FORM).app()) as port:
        failure = await failure_of(browser, f"http://127.0.0.1:{port}", timeout_s=6)
    assert failure.detail


async def test_a_log_in_that_leads_nowhere_ends_at_its_deadline(browser: BrowserProcess, base: str) -> None:
    failure = await failure_of(browser, base, replace(FORM, logout=re.compile("never"), refused=""), timeout_s=6)
    assert "not done within 6 s; the form was sent" in failure.detail


@pytest.mark.parametrize("fault", ["error", "hang"])
async def test_a_site_with_a_fault_is_told(browser: BrowserProcess, site: FakeSite, base: str, fault: str) -> None:
    site.fault = fault
    failure = await failure_of(browser, base, timeout_s=60 if fault == "error" else 1.5)
    assert failure.detail.startswith(base)
    if fault == "error":
        assert "was answered with 500" in failure.detail


async def test_a_site_that_is_down_is_told(browser: BrowserProcess) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        failure = await failure_of(browser, f"http://127.0.0.1:{nobody.getsockname()[1]}")
    assert "ERR_CONNECTION_REFUSED" in failure.detail


async def test_the_context_of_a_log_in_is_closed(browser: BrowserProcess, site: FakeSite, base: str) -> None:
    chromium = await browser._running()
    before = len(chromium.contexts)
    await FormLogin(browser, timeout_s=120).log_in(base, FORM, ACCOUNT)
    site.fault = "error"
    await failure_of(browser, base)
    assert len(chromium.contexts) == before


async def test_no_session_is_shown(browser: BrowserProcess, base: str) -> None:
    form_login = FormLogin(browser, timeout_s=120)
    logins = LoginSessions(
        lambda deployment, name: form_login.log_in(base, FORM, ACCOUNT),
        lifetime_s=lambda name: 60.0,
        margin_s=1.0,
        timeout_s=20.0,
    )
    lent = await logins.lend("blue", "shopping", "0")
    assert lent.state["cookies"][0]["value"] not in repr(lent)


@pytest.mark.parametrize("name", sorted(LOGIN_FORMS))
async def test_the_selectors_of_the_shipped_forms_are_selectors(browser: BrowserProcess, base: str, name: str) -> None:
    form = LOGIN_FORMS[name]
    context = await browser.open_context("<-loopback>")
    page = await context.new_page()
    for selector in (form.logged_in, form.refused, form.logged_out):
        if selector:
            assert await page.evaluate("text => document.querySelector(text)", selector) is None
    await context.close()
