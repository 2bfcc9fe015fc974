"""Logging in at one site: fill in its form in a real browser, and keep what the browser then stores.

Owns ``FormLogin``. Invariants: a log-in ends within its deadline, with a storage state or as
``EpisodeFailed(infra/login_failed)``; its context reaches the site only and is closed; no message holds a
user name or a password.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import BrowserContext, Page
from playwright.async_api import Error as PlaywrightError

from replay.records import EpisodeFailed, Failure, FailureKind
from rollout_workers.browser_session import BrowserSession
from webarena.hosts import WebArenaHosts
from webarena.login_accounts import Account
from webarena.login_forms import LoginForm

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredLogin:
    """What a browser keeps of a log-in: Playwright's storage state.

    ``expires_at`` is the earliest end of its cookies in epoch seconds, None where they last as long as the browser.
    """

    state: dict[str, Any] = field(repr=False)
    expires_at: float | None


class FormLogin:
    """Logs in through forms, in contexts of one browser session."""

    def __init__(self, session: BrowserSession, *, timeout_s: float) -> None:
        self._session, self._timeout_s = session, timeout_s

    async def log_in(self, base: str, form: LoginForm, account: Account) -> StoredLogin:
        """Log in at the site at ``base``.

        Raises:
            EpisodeFailed: ``infra/login_failed`` when the form, the site or the account does not play along;
                ``infra/browser_crashed`` or ``infra/browser_launch_failed`` when there is no browser.
        """
        context = await self._session.open_context(WebArenaHosts({"site": base}).bypass)
        try:
            async with asyncio.timeout(self._timeout_s):
                page = await context.new_page()
                await self._fill_in(page, base, form, account)
                state = await context.storage_state()
        except PlaywrightError as error:
            # Not chained: Playwright's message lists what was typed.
            text = error.message.splitlines()[0] if error.message else type(error).__name__
            raise _failed(base, account, text) from None
        except TimeoutError:
            raise _failed(base, account, f"not done within {self._timeout_s:g} s") from None
        finally:
            await self._close(context)
        ends = [cookie["expires"] for cookie in state.get("cookies", ()) if cookie.get("expires", -1) > 0]
        return StoredLogin(dict(state), min(ends, default=None))

    async def _fill_in(self, page: Page, base: str, form: LoginForm, account: Account) -> None:
        page.set_default_timeout(self._timeout_s * 1000)
        reply = await page.goto(base + form.path, wait_until="domcontentloaded")
        if reply is not None and reply.status >= 400:
            raise _failed(base, account, f"the log-in page answered {reply.status}")
        await page.fill(form.username, account.username.reveal())
        await page.fill(form.password, account.password.reveal())
        if form.submit:
            await page.eval_on_selector(form.submit, "button => button.click()")
        else:
            await page.press(form.password, "Enter")
        either = f"{form.logged_in}, {form.refused}" if form.refused else form.logged_in
        await page.wait_for_selector(either, state="attached")
        if await page.query_selector(form.logged_in) is None:
            raise _failed(base, account, "the site refused the user name or the password")

    async def _close(self, context: BrowserContext) -> None:
        try:
            async with asyncio.timeout(self._session.settings.close_timeout_s):
                await context.close()
        except (PlaywrightError, TimeoutError):
            _LOG.debug("the context of a log-in did not close; it ends with its browser")


def _failed(base: str, account: Account, detail: str) -> EpisodeFailed:
    return EpisodeFailed(Failure(FailureKind.INFRA, "login_failed", f"{base}: {account.redact(detail)}"))
