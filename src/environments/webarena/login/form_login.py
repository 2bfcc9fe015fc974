"""Logging in at one site: fill in its form in a real browser, and keep what the browser then stores.

Owns ``FormLogin``. Invariants: a log-in ends within its deadline, with a storage state or as
``EpisodeFailed(infra/login_failed)``; its context reaches the site only and is closed; no message holds a
user name or a password; the state stays in memory and is never written to a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import BrowserContext, Page, Response
from playwright.async_api import Error as PlaywrightError
from playwright.async_api import TimeoutError as PlaywrightTimeout

from environments.browser.calls import first_line
from environments.browser.process import BrowserProcess
from environments.webarena.login.accounts import Account
from environments.webarena.login.forms import LoginForm
from environments.webarena.login.page import LoginPage, Seen
from environments.webarena.sites.episode_addresses import WebArenaAddresses
from records import failure_codes as codes
from records.failures import EpisodeFailed, Failure

_LOG = logging.getLogger(__name__)
_LOOK_AGAIN_S = 0.1
"""Fixed: a pace within ``environments.webarena.login_timeout_s``."""
_CLIENT_ERROR, _SERVER_ERROR = 400, 500


@dataclass(frozen=True, slots=True)
class StoredLogin:
    """What a browser keeps of a log-in: Playwright's storage state.

    ``expires_at`` is the earliest end of its cookies in epoch seconds, None where they last as long as the browser.
    """

    state: dict[str, Any] = field(repr=False)
    expires_at: float | None


class FormLogin:
    """Logs in through forms, in contexts of one browser."""

    def __init__(self, browser: BrowserProcess, *, timeout_s: float, load_timeout_s: float = 5.0) -> None:
        """Wait ``timeout_s`` for a log-in and ``load_timeout_s`` for the scripts of its page, in seconds."""
        self._browser, self._timeout_s, self._load_timeout_s = browser, timeout_s, load_timeout_s

    async def log_in(self, base: str, form: LoginForm, account: Account) -> StoredLogin:
        """Log in at the site at ``base``.

        Raises:
            EpisodeFailed: ``infra/login_failed`` when the form, the site or the account does not play along;
                ``infra/browser_crashed`` or ``infra/browser_launch_failed`` when there is no browser.
        """
        context = await self._browser.open_context(WebArenaAddresses({"site": base}).bypass)
        attempt = _Attempt(base, account)
        try:
            async with asyncio.timeout(self._timeout_s):
                page = await context.new_page()
                page.set_default_timeout(self._timeout_s * 1000)
                await attempt.open(page, form.path, self._load_timeout_s)
                await attempt.log_in(LoginPage(page, form))
                state = await context.storage_state()
        except PlaywrightError as error:
            # Not chained: Playwright's message lists what was typed.
            raise attempt.failed(first_line(error)) from None
        except TimeoutError:
            raise attempt.failed(f"not done within {self._timeout_s:g} s; {attempt.state}") from None
        finally:
            await self._close(context)
        ends = [cookie["expires"] for cookie in state.get("cookies", ()) if cookie.get("expires", -1) > 0]
        return StoredLogin(dict(state), min(ends, default=None))

    async def _close(self, context: BrowserContext) -> None:
        try:
            async with asyncio.timeout(self._browser.settings.close_timeout_s):
                await context.close()
        except (PlaywrightError, TimeoutError):
            _LOG.debug("the context of a log-in did not close; it ends with its browser")


class _Attempt:
    """One try to log in, and what is to be said about it."""

    def __init__(self, base: str, account: Account) -> None:
        self._base, self._account = base, account
        self._sent = False
        self._named_at = ""
        """Path of the page that asked for the user name alone, where one did."""
        self._seen = Seen()
        self._status = 200

    async def open(self, page: Page, path: str, load_timeout_s: float) -> None:
        """Go to the log-in page, and let its scripts take hold of the form."""
        page.on("response", self._on_response)
        await page.goto(self._base + path, wait_until="domcontentloaded")
        self._check_status()
        with contextlib.suppress(PlaywrightTimeout):
            await page.wait_for_load_state("load", timeout=load_timeout_s * 1000)

    async def log_in(self, page: LoginPage) -> None:
        """Fill in the form, in one step or in two, until the page offers to log out again."""
        while True:
            seen = await page.look()
            self._seen = seen if seen.path else self._seen
            self._check_status()
            if self._sent and seen.logged_in:
                return
            asked_again = seen.password or (seen.username and seen.path == self._named_at)
            if self._sent and (seen.refused or asked_again):
                raise self.failed("the site refused the user name or the password")
            if not self._sent and (seen.password or seen.username):
                await page.send(seen, self._account)
                self._sent = seen.password
                if not self._sent:
                    self._named_at = seen.path
            else:
                await asyncio.sleep(_LOOK_AGAIN_S)

    @property
    def state(self) -> str:
        """How far it came."""
        at = f"at {self._seen.path or 'no page'} ({self._seen.title!r})"
        if self._sent:
            return f"the form was sent, and {at} there is no way to log out, which would show that it worked"
        return f"found no form with a password field {at}"

    def failed(self, detail: str) -> EpisodeFailed:
        """Return the failure of the log-in; it names the site and neither the account nor its password."""
        text = f"{self._base}: {self._account.redact(detail)}"
        return EpisodeFailed(Failure(codes.LOGIN_FAILED, text))

    def _on_response(self, response: Response) -> None:
        if response.request.is_navigation_request() and response.frame.parent_frame is None:
            self._status = response.status

    def _check_status(self) -> None:
        if self._status >= _SERVER_ERROR or (self._status >= _CLIENT_ERROR and not self._sent):
            what = "the sent form" if self._sent else "the request for the log-in page"
            raise self.failed(f"{what} was answered with {self._status}")
