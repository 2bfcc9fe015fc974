"""Logging in through a form in real Chromium, and saying what went wrong without saying the password."""

import logging
import socket
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from urllib.parse import quote, quote_plus

import pytest
import pytest_asyncio

from replay.records import EpisodeFailed, Failure, FailureKind
from rollout_workers.browser_session import BrowserSession
from rollout_workers.settings import BrowserSettings
from tests.rollout_workers.lab_site import serving
from tests.webarena.fake_sites import ACCOUNT, COOKIE, FORM, PASSWORD, USERNAME, FakeSite
from webarena.login import FormLogin
from webarena.login_accounts import Account, Secret
from webarena.login_forms import LOGIN_FORMS, LoginForm
from webarena.login_pool import LoginPool

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

ANYWHERE = "EXCLUDE 127.0.0.1"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[BrowserSession]:
    started = BrowserSession(BrowserSettings(), f"MAP * ~NOTFOUND, {ANYWHERE}")
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
    session: BrowserSession, base: str, form: LoginForm = FORM, account: Account = ACCOUNT, timeout_s: float = 10.0
) -> Failure:
    began = time.monotonic()
    with pytest.raises(EpisodeFailed) as caught:
        await FormLogin(session, timeout_s=timeout_s).log_in(base, form, account)
    assert time.monotonic() - began < timeout_s + 5
    failure = caught.value.failure
    assert (failure.kind, failure.code) == (FailureKind.INFRA, "login_failed")
    shown = "".join(traceback.format_exception(caught.value))
    for text in (failure.detail, str(caught.value), repr(caught.value), shown):
        for secret in (account.password.reveal(), account.username.reveal()):
            assert not any(written in text for written in (secret, quote(secret), quote_plus(secret)))
    return failure


async def test_the_form_is_filled_in_and_the_session_cookie_is_kept(
    session: BrowserSession, site: FakeSite, base: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        login = await FormLogin(session, timeout_s=20).log_in(base, FORM, ACCOUNT)
    (cookie,) = login.state["cookies"]
    assert site.sessions[cookie["value"]] == "agent"
    assert (cookie["name"], login.expires_at) == (COOKIE, None)
    assert PASSWORD not in caplog.text
    assert USERNAME not in caplog.text
    assert cookie["value"] not in repr(login), "a session is as good as a password"


async def test_a_button_can_be_pressed_where_enter_does_not_do(
    session: BrowserSession, site: FakeSite, base: str
) -> None:
    await FormLogin(session, timeout_s=20).log_in(base, replace(FORM, submit="form button"), ACCOUNT)
    assert site.logins == 1


async def test_wrong_credentials_are_told_at_once(session: BrowserSession, base: str) -> None:
    wrong = Account(Secret(USERNAME), Secret("wr0ng & long"))
    failure = await failure_of(session, base, account=wrong, timeout_s=20)
    assert "refused the user name or the password" in failure.detail


async def test_a_page_without_the_form_is_told(session: BrowserSession, base: str) -> None:
    failure = await failure_of(session, base, replace(FORM, password="input[name=gone]"), timeout_s=2)
    assert failure.detail


async def test_a_field_that_takes_no_text_is_told_without_the_text(session: BrowserSession, base: str) -> None:
    """Playwright's own message lists what it tried to type."""
    failure = await failure_of(session, base, replace(FORM, password="input[name=digits]"))
    assert "Cannot type text" in failure.detail


async def test_a_log_in_that_leads_nowhere_ends_at_its_deadline(session: BrowserSession, base: str) -> None:
    failure = await failure_of(session, base, replace(FORM, logged_in=".never", refused=""), timeout_s=2)
    assert "2" in failure.detail


@pytest.mark.parametrize("fault", ["error", "hang"])
async def test_a_site_with_a_fault_is_told(session: BrowserSession, site: FakeSite, base: str, fault: str) -> None:
    site.fault = fault
    failure = await failure_of(session, base, timeout_s=1.5)
    assert failure.detail.startswith(base)
    if fault == "error":
        assert "answered 500" in failure.detail


async def test_a_site_that_is_down_is_told(session: BrowserSession) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        failure = await failure_of(session, f"http://127.0.0.1:{nobody.getsockname()[1]}")
    assert "ERR_CONNECTION_REFUSED" in failure.detail


async def test_the_context_of_a_log_in_is_closed(session: BrowserSession, site: FakeSite, base: str) -> None:
    browser = await session._running()
    before = len(browser.contexts)
    await FormLogin(session, timeout_s=20).log_in(base, FORM, ACCOUNT)
    site.fault = "error"
    await failure_of(session, base)
    assert len(browser.contexts) == before


async def test_the_pool_shows_no_session(session: BrowserSession, base: str) -> None:
    form_login = FormLogin(session, timeout_s=20)
    pool = LoginPool(
        lambda deployment, name: form_login.log_in(base, FORM, ACCOUNT),
        lifetime_s=lambda name: 60.0,
        margin_s=1.0,
        timeout_s=20.0,
    )
    lent = await pool.lend("blue", "shopping")
    assert lent.state["cookies"][0]["value"] not in repr(lent)


@pytest.mark.parametrize("name", sorted(LOGIN_FORMS))
async def test_the_selectors_of_the_shipped_forms_are_selectors(session: BrowserSession, base: str, name: str) -> None:
    form = LOGIN_FORMS[name]
    context = await session.open_context("<-loopback>")
    page = await context.new_page()
    for selector in (form.username, form.password, form.submit, form.logged_in, form.refused, form.logged_out):
        if selector:
            assert await page.evaluate("text => document.querySelector(text)", selector) is None
    await context.close()
