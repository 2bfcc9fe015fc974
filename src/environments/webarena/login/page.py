"""A page on which somebody is to log in: what it shows, and typing into its form.

Owns ``LoginPage`` and its script. Invariants: the form is found by its password field, wherever it stands and
whatever it is called; nothing that was typed is read again; a page that is just being replaced is "nothing to see".
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import Page

from environments.webarena.login.accounts import Account
from environments.webarena.login.forms import LoginForm

_LOOK = files("environments.webarena.login").joinpath("page.js").read_text(encoding="utf-8")
_BEING_REPLACED = ("context was destroyed", "Cannot find context", "frame was detached")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a page shows.

    ``username`` and ``password`` are fields that nothing was typed into yet, ``button`` what sends them; ``refused``
    is a message about a wrong log-in. ``title`` and ``path`` are for errors.
    """

    username: bool = False
    password: bool = False
    button: bool = False
    logged_in: bool = False
    refused: bool = False
    title: str = ""
    path: str = ""


class LoginPage:
    """One page and the site's ``LoginForm``."""

    def __init__(self, page: Page, form: LoginForm) -> None:
        self._page = page
        self._marks = {"logout": form.logout.pattern, "loggedIn": form.logged_in, "refused": form.refused}

    async def look(self) -> Seen:
        """Return what is there now, and remember its fields for ``send``."""
        try:
            seen: dict[str, Any] = await self._page.evaluate(_LOOK, self._marks)
        except PlaywrightError as error:
            if any(text in error.message for text in _BEING_REPLACED):
                return Seen()
            raise
        return Seen(
            username=bool(seen["username"]),
            password=bool(seen["password"]),
            button=bool(seen["button"]),
            logged_in=bool(seen["loggedIn"]),
            refused=bool(seen["refused"]),
            title=str(seen["title"])[:80],
            path=str(seen["path"])[:80],
        )

    async def send(self, seen: Seen, account: Account) -> None:
        """Fill in the fields that were seen and send them."""
        last = _marked("password" if seen.password else "username")
        if seen.username:
            await self._page.fill(_marked("username"), account.username.reveal())
        if seen.password:
            await self._page.fill(_marked("password"), account.password.reveal())
        if seen.button:
            await self._page.eval_on_selector(_marked("submit"), "button => button.click()")
        elif await self._page.eval_on_selector(last, "field => field.form !== null"):
            # Enter does not send a form of several fields without a button.
            await self._page.eval_on_selector(last, "field => field.form.requestSubmit()")
        else:
            await self._page.press(last, "Enter")


def _marked(what: str) -> str:
    return f"[data-waymark-login={what}]"
